//! Placement: best fit by domain.
