//! Tests of the whole server, without sockets.
