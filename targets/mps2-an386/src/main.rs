//! picokube on Arm's MPS2 AN386.
#![no_std]
#![no_main]

use cortex_m_rt::entry;
use embassy_executor::Spawner;
use picokube_mps2_an386::{board, executor, time_driver};

#[entry]
fn main() -> ! {
    time_driver::start();
    executor::run(|spawner| match main_task(spawner) {
        Ok(task) => spawner.spawn(task),
        Err(_) => panic!("the main task exists once and is started once"),
    })
}

#[embassy_executor::task]
async fn main_task(spawner: Spawner) {
    picokube_firmware::run(spawner, board::board()).await
}
