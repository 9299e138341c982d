//! Cases drawn at random, the same ones each time; `PROPTEST_CASES` says how many.

use crate::script::{Op, compare};
use abi::{FlowAction, FlushQueue, InputFlags as I, LocalFlags as L, OutputFlags as O, Termios2, cc};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

/// Characters that mean something, and some that do not.
const CHARACTERS: &[&[u8]] = &[
    b"a",
    b"b",
    b"Z",
    b"_",
    b"7",
    b" ",
    b"\t",
    b"\n",
    b"\r",
    b"\x01",
    b"\x03",
    b"\x04",
    b"\x08",
    b"\x0f",
    b"\x11",
    b"\x12",
    b"\x13",
    b"\x15",
    b"\x16",
    b"\x17",
    b"\x1a",
    b"\x1b",
    b"\x1c",
    b"\x7f",
    b"\x00",
    b"\xff",
    b"\x80",
    b"\xc3\xa9",
    b"\xe2\x82\xac",
    b"\xdf",
    b"!",
    b"?",
];

fn text(most: usize) -> impl Strategy<Value = Vec<u8>> {
    let character = prop_oneof![
        3 => proptest::sample::select(&CHARACTERS[..9]),
        2 => proptest::sample::select(CHARACTERS),
    ];
    proptest::collection::vec(character, 1..most).prop_map(|parts| parts.concat())
}

/// Much at once. No more of it and no reprinting, since more echo at once than 4096 bytes would overrun Linux's
/// ring, where ours shows all (`echo.rs`): erasing a control character takes six.
fn much() -> impl Strategy<Value = Op> {
    (text(9), 200..600_usize).prop_map(|(mut text, n)| {
        text.retain(|&c| c != 0x12);
        text.push(b'\n');
        Op::Type(text.into_iter().cycle().take(n).collect())
    })
}

/// The standard settings with some flags turned over and some characters changed.
fn settings() -> impl Strategy<Value = Termios2> {
    let seldom = proptest::bool::weighted(0.12);
    let flips = proptest::collection::vec(seldom, 32 * 3);
    let special = proptest::sample::select(vec![
        None,
        Some(0),
        Some(b'!'),
        Some(b'?'),
        Some(b'a'),
        Some(0xff),
        Some(b'\n'),
        Some(8),
    ]);
    let min_time = proptest::sample::select(vec![(1, 0), (0, 0), (0, 1), (3, 0), (3, 1), (70, 0)]);
    let raw = proptest::bool::weighted(0.15);
    (flips, proptest::sample::select((0..17).collect::<Vec<usize>>()), special, min_time, raw).prop_map(
        |(flips, which, special, min_time, is_raw)| {
            let bits = |word: usize| {
                (0..32).filter(|bit| flips[word * 32 + bit]).fold(0, |bits, bit| bits | 1 << bit)
            };
            let mut t = Termios2::STANDARD;
            if is_raw {
                (t.iflag, t.oflag, t.lflag) = (I::empty(), O::empty(), L::empty());
            }
            t.iflag ^= I::from_bits_retain(bits(0) & 0x7fff);
            t.oflag ^= O::from_bits_retain(bits(1) & 0x183f);
            t.lflag ^= L::from_bits_retain(bits(2) & 0x18ffb & !L::TOSTOP.bits());
            // (A line-ending REPRINT could overrun the ring, see `much`.)
            if let Some(value) = special
                && which != cc::VREPRINT
            {
                t.cc[which] = value;
            }
            (t.cc[cc::VMIN], t.cc[cc::VTIME]) = min_time;
            t
        },
    )
}

fn operation() -> impl Strategy<Value = Op> {
    let queue =
        || proptest::sample::select(vec![FlushQueue::IFLUSH, FlushQueue::OFLUSH, FlushQueue::IOFLUSH]);
    let action = || {
        proptest::sample::select(vec![FlowAction::OOFF, FlowAction::OON, FlowAction::IOFF, FlowAction::ION])
    };
    prop_oneof![
        20 => text(24).prop_map(Op::Type),
        6 => text(24).prop_map(Op::Write),
        4 => proptest::sample::select(vec![1, 2, 3, 10, 100]).prop_map(Op::Read),
        6 => Just(Op::Drain),
        6 => Just(Op::Screen),
        4 => settings().prop_map(Op::Set),
        1 => settings().prop_map(Op::SetFlush),
        1 => queue().prop_map(Op::Flush),
        1 => queue().prop_map(Op::FlushMaster),
        1 => action().prop_map(Op::Flow),
        1 => any::<bool>().prop_map(Op::Packet),
        2 => Just(Op::Counts),
        2 => Just(Op::Poll),
    ]
}

/// How much of a long echo a signal character of the same batch takes back is a race on the host.
fn without_signals(op: &mut Op) {
    if let Op::Type(text) = op {
        text.retain(|c| ![0x03, 0x1a, 0x1c].contains(c));
        text.push(b'a');
    }
}

fn script() -> impl Strategy<Value = Vec<Op>> {
    let much = proptest::option::weighted(0.2, much());
    (settings(), much, proptest::collection::vec(operation(), 1..14)).prop_map(|(first, much, mut ops)| {
        if let Some(much) = much {
            ops.insert(ops.len() / 2, much);
            ops.iter_mut().for_each(without_signals);
        }
        ops.insert(0, Op::Set(first));
        ops.extend([Op::Counts, Op::Poll, Op::Drain, Op::Screen, Op::Settings]);
        ops
    })
}

#[test]
fn random_scripts_agree_with_the_host() {
    let config = Config { failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let result = TestRunner::new_with_rng(config, rng)
        .run(&script(), |script| compare(&script).map_err(TestCaseError::fail));
    match result {
        Err(TestError::Fail(why, _)) => panic!("{why}"),
        result => result.expect("the scripts can be drawn"),
    }
}
