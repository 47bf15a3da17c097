//! The sending end of a copy, as far as it is a machine: what makes of what was read one state of its file ([`steady`]).

pub mod steady;
