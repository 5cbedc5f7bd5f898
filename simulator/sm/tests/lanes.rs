//! The masks and lanes that handlers compute with. The library itself has no test build, which would compile every handler
//! once more, so its module is taken in here.

#[allow(dead_code)]
#[path = "../src/lanes.rs"]
mod lanes;

#[cfg(target_arch = "x86_64")]
#[path = "../src/avx2.rs"]
mod avx2;

use lanes::*;

#[test]
fn masks_and_lanes_are_two_views_of_one_thing() {
    for mask in [0, 1, 0x8000_0000, 0x1234_5678, FULL] {
        assert_eq!(signs(&spread(mask)), mask);
        assert_eq!(ballot(|i| bit(mask, i)), mask);
        assert_eq!(each(mask).fold(0, |m, lane| m | 1 << lane), mask);
    }
    let (a, b) = ([1; LANES], [2; LANES]);
    assert_eq!(blend(4, &a, &b)[1..4], [2, 1, 2]);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn vectors_and_plain_functions_agree() {
    if !is_x86_feature_detected!("avx2") {
        return;
    }
    let mut seed = 1u32;
    let mut next = move || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if seed >> 28 == 0 { u32::MAX - (seed & 1) } else { seed }
    };
    for round in 0..1000 {
        let mut row = || {
            let mut row = [0; LANES];
            row.iter_mut().for_each(|lane| *lane = next());
            row
        };
        let (a, b, c, d) = (row(), row(), row(), row());
        // SAFETY: the feature was found.
        unsafe {
            assert_eq!(avx2::signs(&a), signs(&a));
            for (signed, [low, high]) in [
                (false, avx2::multiply_wide::<false>(&a, &b, [&c, &d])),
                (true, avx2::multiply_wide::<true>(&a, &b, [&c, &d])),
            ] {
                for i in 0..LANES {
                    let addend = u64::from(c[i]) | u64::from(d[i]) << 32;
                    let product = if signed {
                        (i64::from(a[i] as i32) * i64::from(b[i] as i32)) as u64
                    } else {
                        u64::from(a[i]) * u64::from(b[i])
                    };
                    assert_eq!(u64::from(low[i]) | u64::from(high[i]) << 32, product.wrapping_add(addend));
                }
            }
            let mut rising = [a[0]; LANES];
            for i in 0..LANES {
                rising[i] = a[i / 8].wrapping_add(4 * (i % 8) as u32);
            }
            assert_eq!(avx2::order(&rising, 4), (true, false));
            rising[round % LANES] ^= 64;
            assert_eq!(avx2::order(&rising, 4), (false, false));
            let mut run = [a[0]; LANES];
            for i in 0..LANES {
                run[i] = a[0].wrapping_add(16 * i as u32);
            }
            assert!(avx2::is_run(&run, 16, None) && !avx2::is_run(&run, 8, None));
            assert!(avx2::is_run(&run, 16, Some(&[b[0]; LANES])));
            assert!(!avx2::is_run(&run, 16, Some(&run)));
            run[round % LANES] ^= 1 << (round % 32);
            assert!(!avx2::is_run(&run, 16, None));
            let mut same = [a[0]; LANES];
            assert!(avx2::one_value(&same));
            assert_eq!(avx2::order(&same, 4), (false, true));
            same[round % LANES] ^= 1 << (round % 32);
            assert!(!avx2::one_value(&same));
        }
    }
}
