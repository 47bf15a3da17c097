//! What a user of `emulator::layout` and `emulator::model` can rely on, by way of their public doors.

mod bed;
mod changes;
mod conservation;
mod fates;
mod order;
mod queues;
mod routes;
mod timing;
mod trains;
