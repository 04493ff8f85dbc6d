//! Tests of the twin as its users see it: through profiles and the `Device` contract.

mod drive;
mod power;
mod profile;
mod small;
mod upkeep;
