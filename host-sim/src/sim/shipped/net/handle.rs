//! Breaking connections on purpose.

use std::io::ErrorKind;
use std::task::Waker;

use super::super::super::clock::Moment;
use super::{Connection, End, Inner};

/// One connection, for whoever wants to break it.
pub(in super::super) struct Handle<'n> {
    pub(super) inner: &'n mut Inner,
    pub(super) number: u64,
}

impl Handle<'_> {
    fn connection(&mut self) -> Option<&mut Connection> {
        self.inner.connections.get_mut(&self.number)
    }

    /// It is reset, by something on its way.
    pub(in super::super) fn reset(&mut self) {
        self.inner.fail(self.number, End::Client, ErrorKind::ConnectionReset);
        self.inner.fail(self.number, End::Server, ErrorKind::ConnectionReset);
    }

    /// Nothing that is sent in this direction arrives any more, until both ends give up.
    pub(in super::super) fn lose(&mut self, to: End) {
        let number = self.number;
        let Some(connection) = self.connection() else { return };
        connection.sides[to as usize].is_lost = true;
        self.inner.give_up(number);
    }

    /// What is sent to this end from now on arrives at `until` at the earliest.
    pub(in super::super) fn hold(&mut self, to: End, until: Moment) {
        if let Some(connection) = self.connection() {
            connection.sides[to as usize].held_until = until;
        }
    }

    /// It is reset after so many more bytes to this end.
    pub(in super::super) fn cut_after(&mut self, to: End, bytes: usize) {
        if let Some(connection) = self.connection() {
            connection.sides[to as usize].cut_after = Some(bytes);
        }
    }

    /// The server is to take no more requests over it.
    pub(in super::super) fn ask_to_leave(&mut self) {
        if let Some(connection) = self.connection() {
            connection.is_to_leave = true;
            connection.leaver.take().into_iter().for_each(Waker::wake);
        }
    }

    /// Whether bytes get from the server to the client, as far as anybody knows.
    pub(in super::super) fn is_open(&self) -> bool {
        self.inner.connections.get(&self.number).is_some_and(|it| {
            let [client, server] = &it.sides;
            !it.is_dead && !client.is_lost && client.error.is_none() && server.error.is_none()
        })
    }
}
