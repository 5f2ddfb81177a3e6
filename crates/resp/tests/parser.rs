//! The parser alone: every split of the input gives the same requests, limits hold, garbage does no harm.

use syros_resp::limits::{
    LINE_BYTES_MAX, REQUEST_BYTES_MAX, SKIPPED_WORD_BYTES_MAX, SKIPPED_WORDS_MAX, WORDS_MAX,
};
use syros_resp::{Parser, ParserOutcome, ProtocolError, TooLarge};
use syros_types::Prng;
use syros_types::limits::VALUE_BYTES_MAX;

type Words = Vec<Vec<u8>>;

/// Parses input that arrives in pieces of these lengths (the last one repeated).
fn parse_in_pieces(input: &[u8], pieces: impl Fn(usize) -> usize) -> (Vec<Words>, Option<ProtocolError>) {
    let (mut parser, mut requests) = (Parser::new(), Vec::new());
    let (mut start, mut end, mut round) = (0, 0, 0);
    loop {
        let front = &input[start..end];
        let consumed = match parser.next(front) {
            Ok(ParserOutcome::Incomplete) if end == input.len() => return (requests, None),
            Ok(ParserOutcome::Incomplete) => {
                assert!(parser.needed() <= REQUEST_BYTES_MAX + 2);
                end = input.len().min(end + pieces(round).max(1));
                round += 1;
                continue;
            }
            Ok(ParserOutcome::Empty { consumed } | ParserOutcome::Skipped { consumed }) => consumed,
            Ok(ParserOutcome::TooLarge { consumed, problem }) => {
                requests.push(vec![problem.to_string().into_bytes()]);
                consumed
            }
            Ok(ParserOutcome::Multibulk { consumed }) => {
                let mut words = Vec::new();
                parser.words(front, &mut words);
                requests.push(words.into_iter().map(<[u8]>::to_vec).collect());
                consumed
            }
            Ok(ParserOutcome::Inline { consumed }) => {
                requests.push(parser.inline_words().into_iter().map(<[u8]>::to_vec).collect());
                consumed
            }
            Err(error) => return (requests, Some(error)),
        };
        assert!(consumed > 0 && consumed <= front.len());
        start += consumed;
    }
}

fn parse(input: &[u8]) -> (Vec<Words>, Option<ProtocolError>) {
    parse_in_pieces(input, |_| usize::MAX / 2)
}

fn words(list: &[&[u8]]) -> Words {
    list.iter().map(|word| word.to_vec()).collect()
}

#[test]
fn every_split_gives_the_same_requests() {
    let input: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$12\r\nvalue\r\nvalue\r\nPING\r\n\r\n*0\r\n*-1\r\n  set k \"a b\\x41\\n\" \r\n*1\r\n$0\r\n\r\n*2\r\n$4\r\nECHO\r\n$100\r\n0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789\r\nGET 'it''s\n";
    let (requests, error) = parse(input);
    assert_eq!(requests.len(), 5);
    assert_eq!(requests[0], words(&[b"SET", b"k", b"value\r\nvalue"]));
    assert_eq!(requests[2], words(&[b"set", b"k", b"a bA\n"]));
    assert_eq!(requests[3], words(&[b""]));
    assert_eq!(error, Some(ProtocolError::UnbalancedQuotes));
    for piece in 1..input.len() {
        assert_eq!(parse_in_pieces(input, |_| piece), (requests.clone(), error), "pieces of {piece}");
        let two = |round| if round == 0 { piece } else { usize::MAX / 2 };
        assert_eq!(parse_in_pieces(input, two), (requests.clone(), error), "split at {piece}");
    }
}

#[test]
fn errors_and_their_limits() {
    let value = VALUE_BYTES_MAX;
    for (input, expected) in [
        (b"*1\r\n:1\r\n".to_vec(), Some(ProtocolError::ExpectedDollar(b':'))),
        (b"*1\r\n\r\n\r\n".to_vec(), Some(ProtocolError::ExpectedDollar(b'\r'))),
        (b"*x\r\n".to_vec(), Some(ProtocolError::InvalidMultibulkLength)),
        (b"*\r\n".to_vec(), Some(ProtocolError::InvalidMultibulkLength)),
        (b"*99999999999999999999\r\n".to_vec(), Some(ProtocolError::InvalidMultibulkLength)),
        (format!("*{WORDS_MAX}\r\n").into_bytes(), None),
        (format!("*{SKIPPED_WORDS_MAX}\r\n").into_bytes(), None),
        (format!("*{}\r\n", SKIPPED_WORDS_MAX + 1).into_bytes(), Some(ProtocolError::InvalidMultibulkLength)),
        (b"*1\r\n$-1\r\n".to_vec(), Some(ProtocolError::InvalidBulkLength)),
        (b"*1\r\n$\r\n".to_vec(), Some(ProtocolError::InvalidBulkLength)),
        (b"*1\r\n$01\r\n".to_vec(), Some(ProtocolError::InvalidBulkLength)),
        (b"*1\r\n$1a\r\n".to_vec(), Some(ProtocolError::InvalidBulkLength)),
        (format!("*1\r\n${value}\r\n").into_bytes(), None),
        (format!("*1\r\n${SKIPPED_WORD_BYTES_MAX}\r\n").into_bytes(), None),
        (
            format!("*1\r\n${}\r\n", SKIPPED_WORD_BYTES_MAX + 1).into_bytes(),
            Some(ProtocolError::InvalidBulkLength),
        ),
        (
            format!("*2\r\n${}\r\n{}\r\n$-1\r\n", value + 1, "v".repeat(value + 1)).into_bytes(),
            Some(ProtocolError::InvalidBulkLength),
        ),
        (vec![b'a'; LINE_BYTES_MAX], None),
        (vec![b'a'; LINE_BYTES_MAX + 1], Some(ProtocolError::TooBigInline)),
        ([&b"*"[..], &vec![b'1'; LINE_BYTES_MAX]].concat(), Some(ProtocolError::TooBigMultibulkCount)),
        ([&b"*1\r\n$"[..], &vec![b'1'; LINE_BYTES_MAX]].concat(), Some(ProtocolError::TooBigBulkCount)),
        (b"\"a\"b\r\n".to_vec(), Some(ProtocolError::UnbalancedQuotes)),
    ] {
        let shown = String::from_utf8_lossy(&input[..input.len().min(40)]).into_owned();
        assert_eq!(parse(&input).1, expected, "{shown}");
        if input.len() < value {
            assert_eq!(parse_in_pieces(&input, |_| 1).1, expected, "{shown}, byte by byte");
        }
    }
}

/// A request of these words.
fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut request = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        request.extend_from_slice(word);
        request.extend_from_slice(b"\r\n");
    }
    request
}

#[test]
fn a_request_that_could_be_no_operation_is_skipped_and_those_behind_it_are_understood() {
    let longest = vec![b'v'; VALUE_BYTES_MAX];
    let longer = vec![b'\r'; VALUE_BYTES_MAX + 1];
    let word = request(&[b"SET", b"k", &longer, b"EX", b"10"]);
    let whole = request(&[b"MSET", b"a", &longest, b"b", &longest, b"c", &longest, b"d", &longest]);
    let count = request(&vec![b"word".as_slice(); WORDS_MAX + 1]);
    for (input, problem) in [
        (word, TooLarge::Word(VALUE_BYTES_MAX + 1)),
        (whole, TooLarge::Request),
        (count, TooLarge::Words(WORDS_MAX + 1)),
    ] {
        let mut all = request(&[b"PING"]);
        all.extend_from_slice(&input);
        all.extend_from_slice(&request(&[b"GET", b"k"]));
        let expected =
            vec![words(&[b"PING"]), vec![problem.to_string().into_bytes()], words(&[b"GET", b"k"])];
        assert_eq!(parse(&all), (expected.clone(), None));
        for pieces in [65_536, 99_991] {
            assert_eq!(parse_in_pieces(&all, |_| pieces), (expected.clone(), None), "{pieces} at a time");
        }
        // Byte by byte where one word ends and the next begins.
        let end = all.len() - 100;
        let pieces = |round| if round == 0 { end } else { 1 };
        assert_eq!(parse_in_pieces(&all, pieces), (expected, None));
    }
}

#[test]
fn nothing_is_kept_of_a_request_that_is_skipped() {
    let mut parser = Parser::new();
    let input = format!("*2\r\n$3\r\nSET\r\n${}\r\nbeginning", VALUE_BYTES_MAX + 1).into_bytes();
    assert_eq!(parser.next(&input), Ok(ParserOutcome::Skipped { consumed: input.len() }));
    assert_eq!(parser.needed(), 0);
    assert_eq!(parser.next(&[0; 100_000]), Ok(ParserOutcome::Skipped { consumed: 100_000 }));
    assert_eq!(parser.needed(), 0);
}

/// If every call looked at all that has arrived, this would look at 10^13 bytes.
#[test]
fn a_large_request_in_small_pieces_is_not_scanned_again() {
    let mut input = format!("*{WORDS_MAX}\r\n").into_bytes();
    for _ in 0..WORDS_MAX {
        input.extend_from_slice(b"$10\r\n0123456789\r\n");
    }
    let start = std::time::Instant::now();
    let (requests, error) = parse_in_pieces(&input, |_| 7);
    assert_eq!((requests.len(), requests[0].len(), error), (1, WORDS_MAX, None));
    assert!(start.elapsed().as_secs() < 20);
}

#[test]
fn garbage_does_no_harm() {
    let alphabet = b"*$+-0123456789\r\n\r\n\"'\\x \0\xffabSETget";
    let mut prng = Prng::new(7);
    for _ in 0..30_000 {
        let length = prng.below(60) as usize;
        let mut input: Vec<u8> = (0..length)
            .map(|_| match prng.below(10) {
                0 => prng.next_u64() as u8,
                _ => alphabet[prng.below(alphabet.len() as u64) as usize],
            })
            .collect();
        if prng.chance(1, 3) {
            input.splice(0..0, *b"*2\r\n$3\r\nGET\r\n$");
        }
        let whole = parse(&input);
        let seed = prng.next_u64();
        let pieces = |round| (Prng::new(seed ^ round as u64).below(5) + 1) as usize;
        assert_eq!(parse_in_pieces(&input, pieces), whole, "{:?}", input.escape_ascii().to_string());
    }
}

/// Input that is not what the contract says must not panic either.
#[test]
fn input_that_does_not_continue_does_no_harm() {
    let mut prng = Prng::new(8);
    let pieces: [&[u8]; 8] =
        [b"*2\r\n$3\r\nGET", b"*", b"$5\r\n", b"", b"GET k\r", b"*1\r\n$4\r\nPI", b"\r\n", b"\0"];
    for _ in 0..2000 {
        let mut parser = Parser::new();
        for _ in 0..10 {
            let piece = pieces[prng.below(8) as usize];
            if let Ok(ParserOutcome::Multibulk { .. }) = parser.next(piece) {
                parser.words(b"short", &mut Vec::new());
            }
        }
    }
}
