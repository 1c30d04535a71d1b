//! Ethernet: an `embassy-net` driver for the LAN9118 controller of the MPS2 boards.
//!
//! The controller has FIFOs for frames and for one status word per frame, and no DMA: the CPU
//! moves the words. The interrupt handler only silences the controller and wakes the network
//! task; the task empties the FIFOs and asks for the next interrupt when it finds them empty.
//!
//! Interrupt status bits remember *changes*. A condition that held before the interrupt was
//! asked for would be missed, so it is looked at again afterwards ([`Lan9118::listen`]).

use core::task::Context;

use embassy_net_driver::{Capabilities, Driver, HardwareAddress, LinkState, RxToken, TxToken};
use embassy_sync::waitqueue::AtomicWaker;

use crate::emulator;

/// The largest frame without its checksum.
const MAX_FRAME: usize = 1514;
const FRAME_WORDS: usize = (MAX_FRAME + 4).div_ceil(4);
/// A frame in the TX FIFO comes with two command words.
const TX_COMMAND_BYTES: usize = 8;

/// One frame in each direction.
pub struct Frames {
    rx: [u32; FRAME_WORDS],
    tx: [u32; FRAME_WORDS],
}

impl Frames {
    /// All zero, for a `static`.
    #[expect(clippy::new_without_default, reason = "built in a static, where Default cannot be")]
    pub const fn new() -> Self {
        Self { rx: [0; FRAME_WORDS], tx: [0; FRAME_WORDS] }
    }
}

/// The controller, running.
pub struct Lan9118 {
    waker: &'static AtomicWaker,
    address: [u8; 6],
    frames: &'static mut Frames,
}

impl Lan9118 {
    /// Resets and starts the controller; `None` if there is none.
    ///
    /// The caller enables its interrupt, whose handler calls [`on_interrupt`] with the same waker.
    pub fn start(waker: &'static AtomicWaker, frames: &'static mut Frames) -> Option<Self> {
        if Register::ByteTest.read() != BYTE_TEST {
            return None;
        }
        Register::HardwareConfig.write(HW_RESET);
        while Register::HardwareConfig.read() & HW_RESET != 0 {}
        Register::HardwareConfig.write(HW_MUST_BE_ONE | HW_TX_FIFO_5_KIB);

        // The reset has loaded the address from the board's EEPROM (in QEMU, from `-nic`).
        let low = Mac::AddressLow.read().to_le_bytes();
        let high = Mac::AddressHigh.read().to_le_bytes();
        let address = [low[0], low[1], low[2], low[3], high[0], high[1]];

        Register::InterruptEnable.write(0);
        Register::InterruptStatus.write(u32::MAX);
        // Tell of every received frame, and when a whole frame fits for sending.
        let tx_level = (MAX_FRAME + TX_COMMAND_BYTES).div_ceil(64) as u32;
        Register::FifoInterrupt.write(tx_level << 24);
        Register::InterruptConfig.write(IRQ_ON | IRQ_ACTIVE_HIGH | IRQ_PUSH_PULL);
        phy_write(PHY_INTERRUPT_MASK, PHY_LINK_DOWN | PHY_NEGOTIATED);
        Register::ReceiveConfig.write(0);
        Register::TransmitConfig.write(TX_ON);
        Mac::Control.write(MAC_RECEIVE | MAC_TRANSMIT | MAC_FULL_DUPLEX);
        emulator::start();
        Some(Self { waker, address, frames })
    }

    /// Asks for interrupts of `kinds` besides those that were asked for before.
    fn listen(&self, context: &mut Context<'_>, kinds: u32) {
        self.waker.register(context.waker());
        critical_section::with(|_| {
            let before = Register::InterruptEnable.read();
            Register::InterruptEnable.write(before | kinds | INT_PHY);
        });
    }

    /// Whether a frame can be sent now; if not, the task is woken when one can.
    fn ready_to_send(&self, context: &mut Context<'_>) -> bool {
        if tx_has_room() {
            return true;
        }
        self.listen(context, INT_TX_ROOM);
        tx_has_room()
    }

    /// Moves the next good frame into the buffer and says how long it is.
    fn take_frame(&mut self) -> Option<usize> {
        while rx_frames() > 0 {
            let status = Register::ReceiveStatusFifo.read();
            let len = (status >> 16 & 0x3fff) as usize;
            let words = len.div_ceil(4);
            if status & RX_ERROR == 0 && (CHECKSUM..=MAX_FRAME + CHECKSUM).contains(&len) {
                for word in self.frames.rx.iter_mut().take(words) {
                    *word = Register::ReceiveFifo.read();
                }
                return Some(len - CHECKSUM);
            }
            // A bad frame still has to leave the FIFO, word by word.
            for _ in 0..words {
                Register::ReceiveFifo.read();
            }
        }
        None
    }
}

/// What the interrupt handler does.
pub(crate) fn on_interrupt(waker: &AtomicWaker) {
    Register::InterruptEnable.write(0);
    Register::InterruptStatus.write(u32::MAX);
    waker.wake();
}

impl Driver for Lan9118 {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = ToSend<'a>;

    /// A frame is taken only when its answer could be sent, as the interface demands.
    fn receive(&mut self, context: &mut Context<'_>) -> Option<(Received<'_>, ToSend<'_>)> {
        if !self.ready_to_send(context) {
            return None;
        }
        if rx_frames() == 0 {
            self.listen(context, INT_RX_FRAME);
        }
        let len = self.take_frame()?;
        let Frames { rx, tx } = &mut *self.frames;
        Some((Received(bytes(rx, len)), ToSend(tx)))
    }

    fn transmit(&mut self, context: &mut Context<'_>) -> Option<ToSend<'_>> {
        self.ready_to_send(context).then_some(ToSend(&mut self.frames.tx))
    }

    fn link_state(&mut self, context: &mut Context<'_>) -> LinkState {
        self.listen(context, INT_PHY);
        // Reading the source register arms it for the next change.
        phy_read(PHY_INTERRUPT_SOURCE);
        match phy_read(PHY_BASIC_STATUS) & PHY_LINK_UP {
            0 => LinkState::Down,
            _ => LinkState::Up,
        }
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.max_transmission_unit = MAX_FRAME;
        // Not one, although there is one buffer: TCP would take that for its window, and the FIFO
        // holds several frames.
        capabilities.max_burst_size = None;
        capabilities
    }

    fn hardware_address(&self) -> HardwareAddress {
        HardwareAddress::Ethernet(self.address)
    }
}

/// A frame that has come.
pub struct Received<'a>(&'a mut [u8]);

impl RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

/// Room for a frame that is to go.
pub struct ToSend<'a>(&'a mut [u32; FRAME_WORDS]);

impl TxToken for ToSend<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, fill: F) -> R {
        let result = fill(bytes(self.0, len));
        Register::TransmitFifo.write(TX_FIRST_SEGMENT | TX_LAST_SEGMENT | len as u32);
        Register::TransmitFifo.write(len as u32);
        for word in self.0.iter().take(len.div_ceil(4)) {
            Register::TransmitFifo.write(*word);
        }
        emulator::look_at_the_network();
        result
    }
}

/// The first `len` bytes of a frame's words.
fn bytes(words: &mut [u32; FRAME_WORDS], len: usize) -> &mut [u8] {
    assert!(len <= FRAME_WORDS * 4, "a frame larger than the MTU");
    // SAFETY: within the words, as was just checked; any byte is valid in both types, and `u8` has
    // no alignment to violate.
    unsafe { core::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), len) }
}

fn rx_frames() -> u32 {
    Register::ReceiveFifoInfo.read() >> 16 & 0xff
}

fn tx_has_room() -> bool {
    // Reports of frames that were sent would fill their FIFO; nobody wants to know.
    while Register::TransmitFifoInfo.read() >> 16 & 0xff > 0 {
        Register::TransmitStatusFifo.read();
    }
    let free = (Register::TransmitFifoInfo.read() & 0xffff) as usize;
    free >= MAX_FRAME + 4 + TX_COMMAND_BYTES
}

const BASE: usize = 0x4020_0000;

/// The registers by their offsets.
#[derive(Clone, Copy)]
enum Register {
    ReceiveFifo = 0x00,
    TransmitFifo = 0x20,
    ReceiveStatusFifo = 0x40,
    TransmitStatusFifo = 0x48,
    InterruptConfig = 0x54,
    InterruptStatus = 0x58,
    InterruptEnable = 0x5c,
    ByteTest = 0x64,
    FifoInterrupt = 0x68,
    ReceiveConfig = 0x6c,
    TransmitConfig = 0x70,
    HardwareConfig = 0x74,
    ReceiveFifoInfo = 0x7c,
    TransmitFifoInfo = 0x80,
    MacCommand = 0xa4,
    MacData = 0xa8,
}

impl Register {
    fn read(self) -> u32 {
        // SAFETY: a register of the controller at its address on this board.
        unsafe { ((BASE + self as usize) as *const u32).read_volatile() }
    }

    fn write(self, value: u32) {
        // SAFETY: as above; the controller has no DMA, so no value affects memory.
        unsafe { ((BASE + self as usize) as *mut u32).write_volatile(value) }
    }
}

/// The registers of the MAC, reached through two of the controller's.
#[derive(Clone, Copy)]
enum Mac {
    Control = 1,
    AddressHigh = 2,
    AddressLow = 3,
    PhyAccess = 6,
    PhyData = 7,
}

impl Mac {
    fn read(self) -> u32 {
        Self::command(self as u32 | MAC_READ);
        Register::MacData.read()
    }

    fn write(self, value: u32) {
        Self::wait();
        Register::MacData.write(value);
        Self::command(self as u32);
    }

    fn command(command: u32) {
        Self::wait();
        Register::MacCommand.write(command | MAC_BUSY);
        Self::wait();
    }

    fn wait() {
        while Register::MacCommand.read() & MAC_BUSY != 0 {}
    }
}

/// Reads a register of the built-in PHY, reached through two of the MAC's.
fn phy_read(register: u32) -> u32 {
    phy_command(register, 0);
    Mac::PhyData.read()
}

fn phy_write(register: u32, value: u32) {
    phy_wait();
    Mac::PhyData.write(value);
    phy_command(register, PHY_WRITE);
}

fn phy_command(register: u32, direction: u32) {
    const BUILT_IN_PHY: u32 = 1 << 11;
    phy_wait();
    Mac::PhyAccess.write(BUILT_IN_PHY | register << 6 | direction | PHY_BUSY);
    phy_wait();
}

fn phy_wait() {
    while Mac::PhyAccess.read() & PHY_BUSY != 0 {}
}

/// What a working bus reads at [`Register::ByteTest`].
const BYTE_TEST: u32 = 0x8765_4321;
/// Bytes of checksum that the length of a received frame counts.
const CHECKSUM: usize = 4;

const HW_RESET: u32 = 1 << 0;
const HW_MUST_BE_ONE: u32 = 1 << 20;
const HW_TX_FIFO_5_KIB: u32 = 5 << 16;
const IRQ_PUSH_PULL: u32 = 1 << 0;
const IRQ_ACTIVE_HIGH: u32 = 1 << 4;
const IRQ_ON: u32 = 1 << 8;
const INT_RX_FRAME: u32 = 1 << 3;
const INT_TX_ROOM: u32 = 1 << 9;
const INT_PHY: u32 = 1 << 18;
const RX_ERROR: u32 = 1 << 15;
const TX_ON: u32 = 1 << 1;
const TX_LAST_SEGMENT: u32 = 1 << 12;
const TX_FIRST_SEGMENT: u32 = 1 << 13;
const MAC_BUSY: u32 = 1 << 31;
const MAC_READ: u32 = 1 << 30;
const MAC_RECEIVE: u32 = 1 << 2;
const MAC_TRANSMIT: u32 = 1 << 3;
const MAC_FULL_DUPLEX: u32 = 1 << 20;
const PHY_BUSY: u32 = 1 << 0;
const PHY_WRITE: u32 = 1 << 1;
const PHY_BASIC_STATUS: u32 = 1;
const PHY_INTERRUPT_SOURCE: u32 = 29;
const PHY_INTERRUPT_MASK: u32 = 30;
const PHY_LINK_UP: u32 = 1 << 2;
const PHY_LINK_DOWN: u32 = 1 << 4;
const PHY_NEGOTIATED: u32 = 1 << 6;
