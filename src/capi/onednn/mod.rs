//! What the feature `onednn-abi` adds to the second names that [`exported!`](super::exported) makes: functions
//! that oneDNN has in another sense, or with more parameters, and those that this library does not
//! have.

mod names;
mod own_sense;
mod unbuilt;
