use fixtures::{
    properties,
    property::{Draw, any, within},
};
use sass::lane::{Sign, mma::Register, warp::*};

const FULL: u32 = u32::MAX;

fn lanes(f: impl Fn(usize) -> u32) -> Register {
    std::array::from_fn(f)
}

#[test]
fn shuffles_follow_the_warp_intrinsics() {
    let value = lanes(|lane| 100 + lane as u32);
    // __shfl_down_sync(…, 4): width 32.
    let (down, inside) = shfl(Shuffle::Down, &value, &[4; 32], &[0x1f; 32]);
    assert_eq!(down, lanes(|lane| 100 + if lane < 28 { lane + 4 } else { lane } as u32));
    assert_eq!(inside, 0x0fff_ffff);
    // __shfl_up_sync(…, 1, 8): segments of eight.
    let (up, inside) = shfl(Shuffle::Up, &value, &[1; 32], &[0x1800; 32]);
    assert_eq!(up, lanes(|lane| 100 + if lane % 8 == 0 { lane } else { lane - 1 } as u32));
    assert_eq!(inside, 0xfefe_fefe);
    let (xor, inside) = shfl(Shuffle::Butterfly, &value, &[16; 32], &[0x1f; 32]);
    assert_eq!((xor, inside), (lanes(|lane| 100 + (lane as u32 ^ 16)), FULL));
    // __shfl_sync(…, 3, 4): lane 3 of each four.
    let (index, inside) = shfl(Shuffle::Index, &value, &[3; 32], &[0x1c1f; 32]);
    assert_eq!((index, inside), (lanes(|lane| 100 + lane as u32 / 4 * 4 + 3), FULL));
    // The operand is taken modulo 32.
    let (wrapped, _) = shfl(Shuffle::Index, &value, &[32 + 7; 32], &[0x1f; 32]);
    assert_eq!(wrapped, [107; 32]);
}

#[test]
fn a_matrix_survives_store_and_load_and_two_transposes() {
    let value = lanes(|lane| (lane as u32).wrapping_mul(0x9e37_79b9));
    for transposed in [false, true] {
        assert_eq!(ldsm(&stsm(&value, transposed), transposed), value);
        assert_eq!(ldsm(&stsm(&value, !transposed), transposed), movm_transpose(&value));
    }
    let rows: MatrixRows = std::array::from_fn(|row| std::array::from_fn(|i| (row * 16 + i) as u16));
    let plain = ldsm(&rows, false);
    assert_eq!([plain[0], plain[1], plain[4]], [0x0001_0000, 0x0003_0002, 0x0011_0010]);
    let turned = ldsm(&rows, true);
    assert_eq!([turned[0], turned[1], turned[4]], [0x0010_0000, 0x0030_0020, 0x0011_0001]);
}

properties! { 500 cases;
    fn matches_agree_with_pairwise_comparison(value in |draw: &mut Draw| std::array::from_fn::<_, 32, _>(|_| within(0u32..4)(draw)), high in |draw: &mut Draw| std::array::from_fn::<_, 32, _>(|_| within(0u32..2)(draw)), active in any::<u32>, wide in any::<bool>) {
        let high = wide.then_some(&high);
        let same = |i: usize, j: usize| value[i] == value[j] && high.is_none_or(|high| high[i] == high[j]);
        let any = match_any(active, &value, high);
        for i in (0..32).filter(|i| active >> i & 1 != 0) {
            let expected = (0..32).filter(|&j| active >> j & 1 != 0 && same(i, j)).fold(0u32, |m, j| m | 1 << j);
            assert_eq!(any[i], expected);
        }
        let members: Vec<usize> = (0..32).filter(|i| active >> i & 1 != 0).collect();
        let all = members.windows(2).all(|pair| same(pair[0], pair[1]));
        assert_eq!(match_all(active, &value, high), (if all { active } else { 0 }, all));
    }

    fn reductions_agree_with_wide_arithmetic(value in any::<[u32; 32]>, active in within(1..u32::MAX), signed in any::<bool>) {
        let sign = if signed { Sign::Signed } else { Sign::Unsigned };
        let members: Vec<u32> = (0..32).filter(|i| active >> i & 1 != 0).map(|i| value[i]).collect();
        let wide = |x: u32| if signed { i64::from(x as i32) } else { i64::from(x) };
        let run = |operation| redux(operation, sign, active, &value);
        assert_eq!(run(Reduction::Sum), members.iter().map(|&x| u64::from(x)).sum::<u64>() as u32);
        assert_eq!(wide(run(Reduction::Min)), members.iter().map(|&x| wide(x)).min().unwrap_or(0));
        assert_eq!(wide(run(Reduction::Max)), members.iter().map(|&x| wide(x)).max().unwrap_or(0));
        for bit in 0..32 {
            let ones = members.iter().filter(|&&x| x >> bit & 1 != 0).count();
            assert_eq!(run(Reduction::And) >> bit & 1 != 0, ones == members.len());
            assert_eq!(run(Reduction::Or) >> bit & 1 != 0, ones != 0);
            assert_eq!(run(Reduction::Xor) >> bit & 1 != 0, ones % 2 == 1);
        }
    }

    fn votes_count_active_lanes_only(active in any::<u32>, predicate in any::<u32>) {
        let of = |condition| vote(condition, active, predicate);
        let members: Vec<bool> = (0..32).filter(|i| active >> i & 1 != 0).map(|i| predicate >> i & 1 != 0).collect();
        assert_eq!(of(Vote::All), (active & predicate, members.iter().all(|&x| x)));
        assert_eq!(of(Vote::Any).1, members.iter().any(|&x| x));
        assert_eq!(of(Vote::Equal).1, members.windows(2).all(|pair| pair[0] == pair[1]));
    }
}
