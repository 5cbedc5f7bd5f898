//! What vendor software asked of a real H200 is asked of the simulated one; every answer is compared.
//!
//! Descriptors, pointers and client handles are bound to this process's own. A field that may differ is declared in
//! [`declared`], by struct and field; everything else must be what the card's module said.

mod declared;
mod rebind;
mod replay;

use fixtures::{FixtureError, ioctls};

#[test]
fn libcuda_gets_the_answers_that_the_card_gave() -> Result<(), FixtureError> {
    let replay = replay::run(&ioctls::cuda_mix()?);
    assert!(replay.differences.is_empty(), "{}", replay.report());
    assert_eq!(replay.compared, 479);
    Ok(())
}

#[test]
fn tinygrad_gets_the_answers_that_the_card_gave() -> Result<(), FixtureError> {
    let replay = replay::run(&ioctls::tinygrad_add()?);
    assert!(replay.differences.is_empty(), "{}", replay.report());
    assert_eq!(replay.compared, 208);
    Ok(())
}

#[test]
fn every_declared_difference_is_one() -> Result<(), FixtureError> {
    let mut used = replay::run(&ioctls::cuda_mix()?).declared_used;
    used.extend(replay::run(&ioctls::tinygrad_add()?).declared_used);
    for row in declared::DIFFERENCES {
        assert!(used.contains(&(row.of, row.field)), "{}.{} never differs", row.of, row.field);
    }
    Ok(())
}
