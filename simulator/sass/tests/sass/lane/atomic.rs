use fixtures::{properties, property::any};
use sass::lane::atomic::*;

fn run(operation: AtomicOperation, kind: AtomicType, old: u64, operand: u64) -> u64 {
    apply(operation, kind, old, operand).expect("an operation of the type")
}

#[test]
fn counters_wrap_at_the_operand() {
    let kind = AtomicType::U32;
    let step = |operation, old| run(operation, kind, old, 5);
    assert_eq!([0, 4, 5, 6].map(|old| step(AtomicOperation::Increment, old)), [1, 5, 0, 0]);
    assert_eq!([0, 1, 5, 6].map(|old| step(AtomicOperation::Decrement, old)), [5, 0, 4, 5]);
    assert!(apply(AtomicOperation::Increment, AtomicType::U64, 0, 0).is_none());
    assert!(apply(AtomicOperation::Xor, AtomicType::F64, 0, 0).is_none());
}

#[test]
fn flushing_is_that_of_the_instruction() {
    let tiny = 0x0000_0001u64;
    let kept = run(AtomicOperation::Add, AtomicType::F32 { flushes: false }, tiny, tiny);
    let flushed = run(AtomicOperation::Add, AtomicType::F32 { flushes: true }, tiny, tiny);
    assert_eq!((kept, flushed), (2, 0));
    // Half-precision atomics keep them.
    assert_eq!(run(AtomicOperation::Add, AtomicType::F16x2, 0x0001_0001, 0x0001_8001), 0x0002_0000);
}

properties! { 1000 cases;
    fn results_are_those_of_the_host(a in any::<u64>, b in any::<u64>) {
        use AtomicOperation::*;
        let (x, y) = (a as u32, b as u32);
        let of = |operation, kind| run(operation, kind, a, b);
        assert_eq!(of(Add, AtomicType::S32) as u32, x.wrapping_add(y));
        assert_eq!(of(Min, AtomicType::S32) as u32, (x as i32).min(y as i32) as u32);
        assert_eq!(of(Max, AtomicType::U32) as u32, x.max(y));
        assert_eq!(of(Add, AtomicType::U64), a.wrapping_add(b));
        assert_eq!(of(Max, AtomicType::S64), (a as i64).max(b as i64) as u64);
        assert_eq!(of(Min, AtomicType::U64), a.min(b));
        assert_eq!(of(Xor, AtomicType::U64), a ^ b);
        assert_eq!(of(Exchange, AtomicType::F64), b);
        let sum = f64::from_bits(a) + f64::from_bits(b);
        if !sum.is_nan() {
            assert_eq!(of(Add, AtomicType::F64), sum.to_bits());
        }
        let sum = f32::from_bits(x) + f32::from_bits(y);
        if !sum.is_nan() {
            assert_eq!(of(Add, AtomicType::F32 { flushes: false }) as u32, sum.to_bits());
        }
    }
}
