use sass::lane::{float::NAN, half::HalfFormat, mufu::*};

const SIGN: u32 = 1 << 31;
const INFINITY: u32 = 0x7f80_0000;

/// Every recorded pair of a file.
fn check(text: &str) -> usize {
    let mut lines = text.lines();
    let name = lines.next().and_then(|line| line.strip_prefix("# ")).expect("a name line");
    let (name, form) = name.split_once('.').unwrap_or((name, ""));
    let function = Function::ALL
        .into_iter()
        .find(|f| format!("{f:?}").to_uppercase() == name)
        .expect("a function of the unit");
    let mut count = 0;
    for line in lines {
        let (x, y) = line.split_once(' ').expect("a pair");
        let read = |s| u32::from_str_radix(s, 16).expect("a hexadecimal number");
        let (x, y) = (read(x), read(y));
        let result = match form {
            "" => mufu(function, x),
            "F16" => mufu_half(function, x as u16, HalfFormat::F16),
            "BF16" => mufu_half(function, x as u16, HalfFormat::Bf16),
            other => panic!("form {other}"),
        };
        assert_eq!(result, y, "MUFU.{name} {form} of {x:#x}");
        count += 1;
    }
    count
}

macro_rules! vectors {
    ($($file:literal)*) => {
        [$(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/mufu/", $file, ".txt"))),*]
    };
}

#[test]
fn results_are_those_of_the_card() {
    let count: usize = vectors!(
        "cos" "sin" "ex2" "lg2" "rcp" "rsq" "rcp64h" "rsq64h" "sqrt" "tanh"
        "cos_f16" "sin_f16" "ex2_f16" "lg2_f16" "rcp_f16" "rsq_f16" "sqrt_f16" "tanh_f16"
        "cos_bf16" "sin_bf16" "ex2_bf16" "lg2_bf16" "rcp_bf16" "rsq_bf16" "sqrt_bf16" "tanh_bf16"
    )
    .into_iter()
    .map(check)
    .sum();
    assert_eq!(count, 67_722);
}

#[test]
fn every_register_value_is_a_legal_operand() {
    // Steps of a prime cover every exponent and segment.
    for x in (0..=u32::MAX).step_by(65_537) {
        for function in Function::ALL {
            let result = mufu(function, x);
            assert!(
                result & !SIGN <= INFINITY
                    || result == NAN
                    || function as u8 >= 6
                    || function == Function::Tanh
            );
        }
    }
}
