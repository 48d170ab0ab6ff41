//! Names to places on real files.
