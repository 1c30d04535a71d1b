//! A Kubernetes cluster in one process.
