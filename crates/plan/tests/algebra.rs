//! The laws of the capability algebra, checked point by point: a set is equal to the points that it contains.

use std::collections::BTreeSet;

use proptest::prelude::*;
use vramp_plan::{
    Cap, Caps, Content, DType, Dimension, Format, FrameDesc, Interval, Media, Rate, Size, Space, SpaceSet, TensorDesc,
};

fn spaces() -> impl Strategy<Value = SpaceSet> {
    prop_oneof![Just(SpaceSet::EMPTY), Just(SpaceSet::CPU), Just(SpaceSet::GPU), Just(SpaceSet::ALL)]
}

fn span() -> impl Strategy<Value = Interval<u32>> {
    // Sometimes reversed, which means empty.
    (1u32..6, 1u32..6).prop_map(|(a, b)| Interval::new(a, b))
}

fn rate(n: u32) -> Rate {
    Rate::new(n, 1).expect("n is not 0")
}

fn media() -> impl Strategy<Value = Media> {
    let formats = prop::collection::btree_set(prop::sample::select(&Format::RANKED[..3]), 0..3);
    let rates = prop::option::of((1u32..4, 1u32..4).prop_map(|(a, b)| Interval::new(rate(a), rate(b))));
    let video = (formats, span(), span(), rates).prop_map(|(formats, width, height, rate)| Media::Video {
        formats,
        width,
        height,
        rate,
    });
    let dtypes = prop::collection::btree_set(prop::sample::select(&DType::ALL[..2]), 0..3);
    let tensor = (dtypes, prop::option::of(prop::collection::vec(span(), 0..3)))
        .prop_map(|(dtypes, dims)| Media::Tensor { dtypes, dims });
    prop_oneof![4 => video, 2 => tensor, 1 => Just(Media::Data)]
}

fn caps() -> impl Strategy<Value = Caps> {
    prop::collection::vec((spaces(), media()).prop_map(|(spaces, media)| Cap { spaces, media }), 0..4)
        .prop_map(Caps::any_of)
}

/// Every point that the strategies above can produce, and a few others.
fn points() -> Vec<(Space, Content)> {
    let mut points = Vec::new();
    for space in Space::RANKED {
        points.push((space, Content::Data { bytes: 0, rate: None }));
        for &format in &Format::RANKED[..3] {
            for (width, height) in [(1, 1), (2, 5), (3, 3), (4, 2), (5, 5), (6, 1)] {
                for rate in [None, Rate::new(1, 1), Rate::new(2, 1), Rate::new(3, 1)] {
                    let size = Size::new(width, height).expect("both sides are in range");
                    points.push((space, Content::Video(FrameDesc { format, size, rate })));
                }
            }
        }
        for &dtype in &DType::ALL[..2] {
            for dims in [vec![], vec![1], vec![3], vec![2, 4], vec![5, 1], vec![1, 1, 1]] {
                points.push((space, Content::Tensor(TensorDesc { dtype, dims, rate: None })));
            }
        }
    }
    points
}

/// Two sets are equal if they contain the same points.
fn same(a: &Caps, b: &Caps) -> bool {
    points().iter().all(|(space, content)| a.contains(*space, content) == b.contains(*space, content))
}

fn everything() -> Caps {
    let dims = None;
    Caps::any_of([
        Cap { spaces: SpaceSet::ALL, media: Media::video(Format::RANKED) },
        Cap { spaces: SpaceSet::ALL, media: Media::Tensor { dtypes: DType::ALL.into_iter().collect(), dims } },
        Cap { spaces: SpaceSet::ALL, media: Media::Data },
    ])
}

proptest! {
    #[test]
    fn intersection_is_what_both_contain(a in caps(), b in caps()) {
        let both = a.intersect(&b);
        for (space, content) in points() {
            // If one side leaves the rate open and the other bounds it, the intersection is bounded.
            let expected = a.contains(space, &content) && b.contains(space, &content);
            prop_assert_eq!(both.contains(space, &content), expected, "{} at {:?}", both, content);
        }
    }

    #[test]
    fn union_is_what_either_contains(a in caps(), b in caps()) {
        let either = a.union(&b);
        for (space, content) in points() {
            prop_assert_eq!(either.contains(space, &content), a.contains(space, &content) || b.contains(space, &content));
        }
    }

    #[test]
    fn order_and_grouping_do_not_matter(a in caps(), b in caps(), c in caps()) {
        prop_assert_eq!(a.intersect(&b), b.intersect(&a));
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert!(same(&a.intersect(&b).intersect(&c), &a.intersect(&b.intersect(&c))));
        prop_assert_eq!(a.union(&b).union(&c), a.union(&b.union(&c)));
        prop_assert!(same(&a.intersect(&b.union(&c)), &a.intersect(&b).union(&a.intersect(&c))));
    }

    #[test]
    fn a_set_meets_itself_everything_and_nothing_as_it_should(a in caps()) {
        prop_assert!(same(&a.intersect(&a), &a));
        prop_assert_eq!(a.union(&a), a.clone());
        prop_assert!(same(&a.intersect(&everything()), &a));
        prop_assert!(a.intersect(&Caps::NONE).is_empty());
        prop_assert_eq!(a.union(&Caps::NONE), a.clone());
    }

    #[test]
    fn fixation_picks_a_member_and_only_fails_on_nothing(a in caps()) {
        match a.fixate() {
            Some((space, content)) => prop_assert!(a.contains(space, &content), "{} has no {:?}", a, content),
            None => prop_assert!(a.is_empty()),
        }
    }

    #[test]
    fn fixation_prefers_the_gpu(a in caps()) {
        let gpu = a.alternatives().iter().any(|c| c.spaces.contains(Space::Gpu));
        prop_assert_eq!(a.fixate().map(|(space, _)| space == Space::Gpu), (!a.is_empty()).then_some(gpu));
    }

    #[test]
    fn an_explanation_is_given_exactly_when_two_sets_do_not_meet(a in caps(), b in caps()) {
        prop_assert_eq!(a.explain(&b).is_empty(), !a.intersect(&b).is_empty());
        prop_assert_eq!(a.explain(&b).len(), b.explain(&a).len());
    }

    #[test]
    fn mending_what_is_explained_makes_two_frames_meet(
        (a, b) in (media(), media()), (here, there) in (spaces(), spaces())
    ) {
        let (one, other) = (Caps::one(here, a.clone()), Caps::one(there, b.clone()));
        if one.is_empty() || other.is_empty() {
            return Ok(());
        }
        let missed: BTreeSet<_> = one.explain(&other).into_iter().collect();
        // Open the first set along each missed dimension as far as the second: then they intersect.
        let spaces = if missed.contains(&Dimension::Space) { there } else { here };
        let media = match (a, b) {
            (Media::Video { formats, width, height, rate },
             Media::Video { formats: f, width: w, height: h, rate: r }) => {
                let size = missed.contains(&Dimension::Size);
                Media::Video {
                    formats: if missed.contains(&Dimension::Format) { f } else { formats },
                    width: if size { w } else { width },
                    height: if size { h } else { height },
                    rate: if missed.contains(&Dimension::Rate) { r } else { rate },
                }
            }
            (Media::Tensor { dtypes, dims }, Media::Tensor { dtypes: t, dims: d }) => Media::Tensor {
                dtypes: if missed.contains(&Dimension::DType) { t } else { dtypes },
                dims: if missed.contains(&Dimension::Dims) { d } else { dims },
            },
            (a, b) => if missed.contains(&Dimension::PortType) { b } else { a },
        };
        prop_assert!(!Caps::one(spaces, media).intersect(&other).is_empty());
    }
}
