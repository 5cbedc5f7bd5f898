//! The outside oracle of the method, ring entry and QMD rows: NVIDIA's published class headers, as tables in `fixtures`.
//!
//! Both directions are compared. What a header has and we lack, or the other way round, is listed here by name.
use std::collections::BTreeMap;

use fixtures::class_headers::{Group, GroupKind, Header, header};
use nv_abi::{
    Field,
    gpfifo::GP_ENTRY,
    method::{ClassTable, METHOD_HEADER, class_table},
    qmd::rows::{V03_00, V04_00, V05_00},
    texture::rows::{
        TEXHEAD_1D, TEXHEAD_BL, TEXHEAD_PITCH, TEXHEAD_V2_1DRT, TEXHEAD_V2_1DSB, TEXHEAD_V2_BL,
        TEXHEAD_V2_PITCH, TEXSAMP,
    },
};

/// Highest and lowest bit, and the stride of an array.
type Place = (u32, u32, u32);

fn theirs(group: &Group) -> BTreeMap<&str, Place> {
    let row = |f: &fixtures::class_headers::Field| (f.hi, f.lo, f.strides.first().copied().unwrap_or(0));
    group.fields.iter().map(|f| (f.name.as_str(), row(f))).collect()
}

fn ours(fields: &[Field]) -> BTreeMap<&str, Place> {
    fields.iter().map(|f| (f.name, (f.hi, f.lo, f.stride))).collect()
}

/// Every value of ours is the header's, and the other way round. The header's TRUE and FALSE of single bits say nothing
/// that the bit does not, so the rows leave them out. A value `_32` is named `32`.
fn assert_same_values(place: &str, fields: &[Field], group: &Group) {
    for field in fields {
        let Some(row) = group.fields.iter().find(|row| row.name == field.name) else { continue };
        let ours: BTreeMap<_, _> = field.enumerants.iter().map(|e| (e.name, e.value)).collect();
        let theirs: BTreeMap<_, _> = row
            .values
            .iter()
            .map(|(name, value)| (name.trim_start_matches('_'), *value))
            .filter(|(name, _)| field.width() > 1 || !["TRUE", "FALSE"].contains(name))
            .collect();
        assert_eq!(ours, theirs, "{place} {}", field.name);
    }
}

fn version<'a>(header: &'a Header, name: &str) -> &'a Group {
    let is = |group: &&Group| group.kind == GroupKind::Version && group.name == name;
    header.groups.iter().find(is).unwrap_or_else(|| panic!("the header has no version {name}"))
}

#[test]
fn every_qmd_row_is_the_headers_and_every_field_of_the_header_has_a_row() {
    for (file, name, layout) in [
        ("clc9c0qmd", "V03_00", V03_00::LAYOUT),
        ("clcbc0qmd", "V04_00", V04_00::LAYOUT),
        ("clcdc0qmd", "V05_00", V05_00::LAYOUT),
        ("clcec0qmd", "V05_00", V05_00::LAYOUT),
    ] {
        let header = header(file).unwrap();
        let group = version(&header, name);
        assert_eq!(ours(layout.fields), theirs(group), "{file} {name}");
        assert_same_values(name, layout.fields, group);
    }
}

#[test]
fn no_field_of_v03_00_moves_between_the_headers_that_define_it() {
    // Ada's header is the one we have rows of; these have fields that it lacks, and lack some that it has.
    for (file, only_theirs, only_ours) in [
        (
            "clc6c0qmd",
            "RELEASE0_NON_BLOCKING_INTR_TYPE RELEASE1_NON_BLOCKING_INTR_TYPE RELEASE2_NON_BLOCKING_INTR_TYPE",
            "CTA_LAUNCH_QUEUE OCCUPANCY_MAX_REGISTER OCCUPANCY_MAX_SHARED_MEM OCCUPANCY_MAX_WARP \
             OCCUPANCY_THRESHOLD_REGISTER OCCUPANCY_THRESHOLD_SHARED_MEM OCCUPANCY_THRESHOLD_WARP \
             RELEASE0_TRAP_TYPE RELEASE1_TRAP_TYPE RELEASE2_TRAP_TYPE \
             SM_DISABLE_MASK_EXT_LOWER SM_DISABLE_MASK_EXT_UPPER",
        ),
        ("clc7c0qmd", "", "SM_DISABLE_MASK_EXT_LOWER SM_DISABLE_MASK_EXT_UPPER"),
        ("clcbc0qmd", "", "SM_DISABLE_MASK_EXT_LOWER SM_DISABLE_MASK_EXT_UPPER"),
    ] {
        let header = header(file).unwrap();
        let theirs = theirs(version(&header, "V03_00"));
        let ours = ours(V03_00::LAYOUT.fields);
        for (name, place) in &ours {
            if let Some(other) = theirs.get(name) {
                // Hardware's own copy of the counter grew after GA100.
                if (file, *name) == ("clc6c0qmd", "HW_ONLY_DEPENDENCE_COUNTER") {
                    assert_eq!((*other, *place), ((1958, 1952, 0), (1967, 1952, 0)));
                    continue;
                }
                assert_eq!(other, place, "{file} {name}");
            }
        }
        // Reserved and spare bits have names in some headers and none in others.
        let named = |name: &&&str| !name.contains("RESERVED") && !name.contains("SPARE");
        let lacking = theirs.keys().filter(|name| !ours.contains_key(*name)).filter(named);
        let added = ours.keys().filter(|name| !theirs.contains_key(*name));
        let words = |names: Vec<&&str>| names.into_iter().copied().collect::<Vec<_>>().join(" ");
        assert_eq!(words(lacking.collect()), only_theirs, "{file}");
        assert_eq!(words(added.collect()), only_ours, "{file}");
    }
}

fn methods(header: &Header) -> BTreeMap<&str, &Group> {
    let is = |group: &&Group| matches!(group.kind, GroupKind::Method { .. });
    header.groups.iter().filter(is).map(|group| (group.name.as_str(), group)).collect()
}

fn table(file: &str) -> &'static ClassTable {
    let number = u32::from_str_radix(&file[2..], 16).unwrap();
    class_table(number).unwrap_or_else(|| panic!("{file} has no class table"))
}

#[test]
fn every_method_of_the_full_headers_is_a_row_and_every_row_is_a_method() {
    for file in [
        "clc56f", "clc6c0", "clc7c0", "clc9c0", "clcbc0", "clcdc0", "clcec0", "clc6b5", "clc7b5", "clc8b5",
        "clc9b5", "clcab5",
    ] {
        let header = header(file).unwrap();
        let theirs_by_name = methods(&header);
        let ours_by_name: BTreeMap<_, _> =
            table(file).all().into_iter().map(|method| (method.name, method)).collect();
        let lacking: Vec<_> =
            theirs_by_name.keys().filter(|name| !ours_by_name.contains_key(*name)).collect();
        let invented: Vec<_> =
            ours_by_name.keys().filter(|name| !theirs_by_name.contains_key(*name)).collect();
        assert!(
            lacking.is_empty() && invented.is_empty(),
            "{file}: we lack {lacking:?}, only we have {invented:?}"
        );
        for (name, method) in ours_by_name {
            let group = theirs_by_name[name];
            let GroupKind::Method { address, stride } = group.kind else { unreachable!("filtered") };
            assert_eq!(u64::from(method.address), address, "{file} {name}");
            assert_eq!(u64::from(method.stride), stride.unwrap_or(0), "{file} {name}");
            if group.fields.is_empty() {
                // A method whose data has no fields in the header: our row says so with one of all bits.
                assert_eq!(ours(method.layout.fields), BTreeMap::from([("V", (31, 0, 0))]), "{file} {name}");
                continue;
            }
            assert_eq!(ours(method.layout.fields), theirs(group), "{file} {name}");
            assert_same_values(&format!("{file} {name}"), method.layout.fields, group);
        }
    }
}

#[test]
fn what_the_cut_down_host_headers_do_say_agrees_with_the_rows() {
    for file in ["clc86f", "clc96f"] {
        let header = header(file).unwrap();
        for (name, group) in methods(&header) {
            let GroupKind::Method { address, .. } = group.kind else { unreachable!("filtered") };
            let method = table(file).named(name).unwrap_or_else(|| panic!("{file} {name} has no row"));
            assert_eq!(u64::from(method.address), address, "{file} {name}");
            for row in &group.fields {
                let field = method.layout.field(&row.name);
                let field = field.unwrap_or_else(|| panic!("{file} {name} {} has no row", row.name));
                assert_eq!((field.hi, field.lo), (row.hi, row.lo), "{file} {name} {}", row.name);
                for (value_name, value) in &row.values {
                    let ours = field.enumerants.iter().find(|e| e.name == value_name);
                    assert_eq!(
                        ours.map(|e| e.value),
                        Some(*value),
                        "{file} {name} {}.{value_name}",
                        row.name
                    );
                }
            }
        }
    }
}

/// The free-standing formats of a host header, by full name.
fn structure(header: &Header) -> BTreeMap<&str, &fixtures::class_headers::Field> {
    let is = |group: &&Group| group.kind == GroupKind::Structure;
    header.groups.iter().filter(is).flat_map(|g| &g.fields).map(|f| (f.name.as_str(), f)).collect()
}

#[test]
fn ring_entries_and_method_headers_lie_where_the_host_headers_say() {
    let ampere = header("clc56f").unwrap();
    let hopper = header("clc86f").unwrap();
    let (ampere, hopper) = (structure(&ampere), structure(&hopper));
    let mut seen = 0;
    for field in GP_ENTRY::LAYOUT.fields {
        let word = field.lo / 32;
        let name = format!("GP_ENTRY{word}_{}", field.name);
        // Hopper's table has one control opcode more.
        let row = hopper.get(name.as_str()).unwrap_or_else(|| panic!("no {name}"));
        assert_eq!((field.hi - 32 * word, field.lo - 32 * word), (row.hi, row.lo), "{name}");
        let values: Vec<_> = row.values.iter().map(|(n, v)| (n.as_str(), *v)).collect();
        assert_eq!(field.enumerants.iter().map(|e| (e.name, e.value)).collect::<Vec<_>>(), values, "{name}");
        seen += 1;
    }
    let theirs = hopper.keys().filter(|name| name.starts_with("GP_ENTRY")).count();
    assert_eq!(seen, theirs, "fields of ring entries");

    for field in METHOD_HEADER::LAYOUT.fields {
        let found = [format!("DMA_METHOD_{}", field.name), format!("DMA_{}", field.name)]
            .into_iter()
            .find_map(|name| ampere.get(name.as_str()));
        let row = found.unwrap_or_else(|| panic!("no {}", field.name));
        assert_eq!((field.hi, field.lo), (row.hi, row.lo), "{}", field.name);
        for e in field.enumerants {
            assert!(row.values.contains(&(e.name.to_owned(), e.value)), "{} {}", field.name, e.name);
        }
    }
}

#[test]
fn every_texture_row_is_the_headers_and_every_field_of_the_header_has_a_row() {
    let second =
        [TEXHEAD_V2_BL::LAYOUT, TEXHEAD_V2_1DRT::LAYOUT, TEXHEAD_V2_1DSB::LAYOUT, TEXHEAD_V2_PITCH::LAYOUT];
    for (file, layouts) in [
        ("clc997tex", [TEXHEAD_BL::LAYOUT, TEXHEAD_1D::LAYOUT, TEXHEAD_PITCH::LAYOUT].as_slice()),
        ("clcb97tex", &second),
        ("clce97tex", &second),
    ] {
        let header = header(file).unwrap();
        for layout in layouts {
            let group = version(&header, layout.name);
            assert_eq!(ours(layout.fields), theirs(group), "{file} {}", layout.name);
            assert_same_values(layout.name, layout.fields, group);
        }
        // The forms with a colour key, and in Hopper's header those of older GPUs again.
        let lacking: Vec<_> = header.groups.iter().map(|group| group.name.as_str()).collect();
        let known =
            |name: &&str| layouts.iter().any(|layout| layout.name == *name) || name.starts_with("TEXSAMP");
        for name in lacking.into_iter().filter(|name| !known(name)) {
            let older = file == "clcb97tex" && !name.contains("V2");
            assert!(name.ends_with("CK") || older, "{file} {name}");
        }
    }
}

#[test]
fn every_sampler_row_is_in_the_headers_word_of_it() {
    for (file, unnamed) in [("clc997tex", ""), ("clcb97tex", ""), ("clce97tex", "RESERVED0A RESERVED0B")] {
        let header = header(file).unwrap();
        let mut seen = Vec::new();
        for word in 0..8 {
            let group = version(&header, &format!("TEXSAMP{word}"));
            for row in &group.fields {
                let field = TEXSAMP::LAYOUT.field(&row.name);
                let field = field.unwrap_or_else(|| panic!("{file} {} has no row", row.name));
                assert_eq!(
                    (field.hi, field.lo),
                    (row.hi + 32 * word, row.lo + 32 * word),
                    "{file} {}",
                    row.name
                );
                seen.push(field.name);
            }
            assert_same_values(file, TEXSAMP::LAYOUT.fields, group);
        }
        let lacking =
            TEXSAMP::LAYOUT.fields.iter().map(|field| field.name).filter(|name| !seen.contains(name));
        assert_eq!(lacking.collect::<Vec<_>>().join(" "), unnamed, "{file}");
    }
}
