//! Tests of the twin as its users see it: through profiles and the `Device` contract.

mod drive;
mod profile;
mod sequences;
mod small;
mod upkeep;
