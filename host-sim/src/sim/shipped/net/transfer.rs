//! Bytes on their way, and how connections end.

use std::io::ErrorKind;
use std::task::{Context, Poll, Waker};

use super::{End, Event, Inner, KEEP_ALIVE_SECS, Parting, Trap};

impl Inner {
    pub(super) fn arrive(&mut self, number: u64, to: End, bytes: Vec<u8>) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let side = &mut connection.sides[to as usize];
        side.under_way = side.under_way.saturating_sub(bytes.len());
        if side.is_gone {
            // Nobody knows of that connection here.
            return self.send(number, to, 0, Event::Reset(number, to.other()));
        }
        side.arrived.extend(bytes);
        side.wake();
    }

    pub(super) fn poll_read(
        &mut self,
        number: u64,
        end: End,
        context: &mut Context<'_>,
        room: &mut [u8],
    ) -> Poll<Result<usize, ErrorKind>> {
        let Some(connection) = self.connections.get_mut(&number) else {
            return Poll::Ready(Err(ErrorKind::NotConnected));
        };
        let [client, server] = &mut connection.sides;
        let (side, other) = match end {
            End::Client => (client, server),
            End::Server => (server, client),
        };
        if !side.arrived.is_empty() && !room.is_empty() {
            let mut count = side.arrived.len().min(room.len());
            if self.random.below(4) == 0 {
                count = 1 + self.random.below(count as u64) as usize;
            }
            let (carried, hash) = &mut self.carried;
            *carried += count as u64;
            for (place, byte) in room.iter_mut().zip(side.arrived.drain(..count)) {
                *place = byte;
                *hash = (*hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
            other.writer.take().into_iter().for_each(Waker::wake);
            return Poll::Ready(Ok(count));
        }
        if let Some(error) = side.error {
            return Poll::Ready(Err(error));
        }
        if side.has_ended || room.is_empty() {
            return Poll::Ready(Ok(0));
        }
        side.reader = Some(context.waker().clone());
        Poll::Pending
    }

    pub(super) fn poll_write(
        &mut self,
        number: u64,
        end: End,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, ErrorKind>> {
        let Some(connection) = self.connections.get_mut(&number) else {
            return Poll::Ready(Err(ErrorKind::NotConnected));
        };
        let [client, server] = &mut connection.sides;
        let (side, other) = match end {
            End::Client => (client, server),
            End::Server => (server, client),
        };
        if let Some(error) = side.error {
            return Poll::Ready(Err(error));
        }
        if other.is_ended {
            return Poll::Ready(Err(ErrorKind::BrokenPipe));
        }
        let free = self.manners.window.saturating_sub(other.under_way + other.arrived.len());
        if free == 0 {
            side.writer = Some(context.waker().clone());
            return Poll::Pending;
        }
        let trap = if end == End::Client { self.traps.pop_front() } else { None };
        match trap {
            Some(Trap::Death) => {
                self.killed.push(connection.device);
                return Poll::Pending;
            }
            Some(Trap::Loss) => {
                other.is_lost = true;
                self.give_up(number);
                return self.poll_write(number, end, context, bytes);
            }
            None => {}
        }
        let most = bytes.len().min(free).min(self.manners.segment);
        let mut count = most;
        if self.random.below(3) == 0 {
            count = 1 + self.random.below(most as u64) as usize;
        }
        let mut is_cut = false;
        if let Some(left) = &mut other.cut_after {
            is_cut = count >= *left;
            count = count.min(*left);
            *left -= count;
        }
        other.under_way += count;
        let event = Event::Bytes(number, end.other(), bytes[..count].to_vec());
        self.send(number, end, count, event);
        if is_cut {
            self.send(number, end, 0, Event::Reset(number, end.other()));
            self.fail(number, end, ErrorKind::ConnectionReset);
            return Poll::Ready(Err(ErrorKind::ConnectionReset));
        }
        Poll::Ready(Ok(count))
    }

    pub(super) fn end(&mut self, number: u64, end: End) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let other = &mut connection.sides[end.other() as usize];
        if !other.is_ended {
            other.is_ended = true;
            self.send(number, end, 0, Event::Ended(number, end.other()));
        }
    }

    pub(super) fn leave(&mut self, number: u64, end: End) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let side = &mut connection.sides[end as usize];
        side.is_gone = true;
        // A client that goes resets its connections, and so does whoever has not read everything.
        let resets = end == End::Client || !side.arrived.is_empty();
        side.arrived.clear();
        let is_refused = matches!(connection.opened, Some(Err(_)));
        let is_over = connection.sides.iter().all(|side| side.is_gone) || is_refused;
        if is_over {
            self.connections.remove(&number);
            return;
        }
        match (self.parting, resets) {
            (Parting::Silent, _) => {
                let pause = KEEP_ALIVE_SECS * 1000 + self.random.below(1000);
                self.agenda.plan(self.now.plus_millis(pause), Event::Asked(number, end));
            }
            (Parting::Usual, true) => {
                self.send(number, end, 0, Event::Reset(number, end.other()));
            }
            (Parting::Usual, false) => self.end(number, end),
        }
    }
}
