//! From a kubeconfig or files to a page, everything that is refused on the way, and a look at the server.

mod folder;

mod attempt;
mod material;
