//! Known answers: write amplification, conservation and queueing against closed forms.

mod amplification;
mod counts;
mod heat;
mod history;
mod life;
mod queue;
mod tables;
mod theory;
