//! `Secret`: what a host and the drive both know, and what is proved by it.
//!
//! Source: DH-HMAC-CHAP, section 8.13.5 of the Base Specification 2.0; the text is as nvme-cli
//! writes it (`nvme gen-dhchap-key`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac::{Algorithm, HMAC_SHA256, HMAC_SHA384, HMAC_SHA512, Key, sign, verify};
use thiserror::Error;

const PREFIX: &str = "DHHC-1:";
/// A challenge, and the answer to it, have so many bytes: those of SHA-256.
pub const HASH_BYTES: usize = 32;

/// Why a text is no secret.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum SecretError {
    /// It is something else.
    #[error("it is no DHHC-1:NN:BASE64:, as nvme gen-dhchap-key prints it")]
    Form,
    /// The number in it is not known.
    #[error("of DHHC-1:NN: NN may be 00, 01, 02 and 03")]
    Transform,
    /// It is too short, too long, or does not fit the number in it.
    #[error("a secret has 32, 48 or 64 bytes, and after 01, 02 and 03 just so many in this order")]
    Length,
    /// It was mistyped.
    #[error("its checksum is wrong: a letter of it was changed")]
    Check,
}

/// What was asked of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    pub transaction: u16,
    pub sequence: u32,
    pub value: [u8; HASH_BYTES],
}

/// What a host and the drive both know.
#[derive(Clone)]
pub struct Secret {
    key: Vec<u8>,
    transform: Option<Algorithm>,
}

impl Secret {
    /// Reads `DHHC-1:NN:BASE64:`, with space around it.
    ///
    /// # Errors
    /// It is no such text.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let coded = text.trim().strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(':'));
        let (number, coded) =
            coded.and_then(|rest| rest.split_once(':')).ok_or(SecretError::Form)?;
        let transform = match number {
            "00" => None,
            "01" => Some(HMAC_SHA256),
            "02" => Some(HMAC_SHA384),
            "03" => Some(HMAC_SHA512),
            _ => return Err(SecretError::Transform),
        };
        let bytes = STANDARD.decode(coded).map_err(|_| SecretError::Form)?;
        let (key, check) = bytes.split_last_chunk::<4>().ok_or(SecretError::Length)?;
        let fits = match transform {
            None => [32, 48, 64].contains(&key.len()),
            Some(algorithm) => key.len() == algorithm.digest_algorithm().output_len(),
        };
        if !fits {
            return Err(SecretError::Length);
        }
        if crc32fast::hash(key).to_le_bytes() != *check {
            return Err(SecretError::Check);
        }
        Ok(Self { key: key.into(), transform })
    }

    /// Whether a host of this name has answered a challenge of this drive as one who knows it.
    pub fn proves(&self, host: &[u8], drive: &[u8], asked: &Challenge, answer: &[u8]) -> bool {
        let key = match self.transform {
            None => Key::new(HMAC_SHA256, &self.key),
            Some(algorithm) => {
                let known = Key::new(algorithm, &self.key);
                Key::new(HMAC_SHA256, sign(&known, &[host, b"NVMe-over-Fabrics"].concat()).as_ref())
            }
        };
        // A zero that says that nothing is encrypted with it, and one that ends the host's name.
        let message = [
            &asked.value[..],
            &asked.sequence.to_le_bytes(),
            &asked.transaction.to_le_bytes(),
            &[0],
            b"HostHost",
            host,
            &[0],
            drive,
        ];
        verify(&key, &message.concat(), answer).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::{Challenge, Secret, SecretError};

    /// Keys of all kinds, and the answers to one challenge, as Python's hmac module has them.
    const KNOWN: [(&str, &str); 5] = [
        (
            "DHHC-1:00:ICUqLzQ5PkNITVJXXGFma3B1en+EiY6TmJ2ip6yxtrsWjykY:",
            "7e17ad91abf5858f08b9f0560cba673ca8aa1f82f2f68732f7c5759d99eaaa6b",
        ),
        (
            "DHHC-1:00:QEVKT1RZXmNobXJ3fIGGi5CVmp+kqa6zuL3Cx8zR1tvg5erv9Pn+AwgNEhccISYrMDU6P0RJ\
             TlNYXWJnbHF2ewus4rs=:",
            "4606596e5261b74764f94034fbfdaccc6345c7af48dd3e6651929d2a99478155",
        ),
        (
            "DHHC-1:01:ICUqLzQ5PkNITVJXXGFma3B1en+EiY6TmJ2ip6yxtrsWjykY:",
            "8fa25a4028c4a1a90c77d59df282bb2746d4769894bb0a381c00f4f29d49a909",
        ),
        (
            "DHHC-1:02:MDU6P0RJTlNYXWJnbHF2e4CFio+UmZ6jqK2yt7zBxsvQ1drf5Onu8/j9AgcMERYbMmAivg==:",
            "44f9f50006909fc366605f7724500b36d36821b5a92b897f046b81238012f2e3",
        ),
        (
            "DHHC-1:03:QEVKT1RZXmNobXJ3fIGGi5CVmp+kqa6zuL3Cx8zR1tvg5erv9Pn+AwgNEhccISYrMDU6P0RJ\
             TlNYXWJnbHF2ewus4rs=:",
            "875d1e77120138b512bd7c8108fbec57770c1505473574d8dd41304eee36bb48",
        ),
    ];

    fn bytes(hexadecimal: &str) -> Vec<u8> {
        let pairs = hexadecimal.as_bytes().chunks(2);
        pairs.map(|two| u8::from_str_radix(str::from_utf8(two).unwrap(), 16).unwrap()).collect()
    }

    #[test]
    fn answers_are_those_of_the_published_protocol_for_keys_of_all_kinds() {
        let value = std::array::from_fn(|at| at as u8);
        let asked = Challenge { transaction: 7, sequence: 0x0102_0304, value };
        for (text, answer) in KNOWN {
            let secret = Secret::parse(&format!(" {text}\n")).unwrap();
            let answer = bytes(answer);
            assert!(secret.proves(b"nqn.host", b"nqn.drive", &asked, &answer), "{text}");
            assert!(!secret.proves(b"nqn.another", b"nqn.drive", &asked, &answer));
            assert!(!secret.proves(b"nqn.host", b"nqn.another", &asked, &answer));
            assert!(!secret.proves(b"nqn.host", b"nqn.drive", &asked, &answer[..31]));
            for other in [
                Challenge { transaction: 8, ..asked.clone() },
                Challenge { sequence: 1, ..asked.clone() },
                Challenge { value: [9; 32], ..asked.clone() },
            ] {
                assert!(!secret.proves(b"nqn.host", b"nqn.drive", &other, &answer), "{other:?}");
            }
        }
    }

    #[test]
    fn what_is_no_secret_is_refused_with_its_reason() {
        let good = KNOWN[2].0;
        let no = |text: &str| Secret::parse(text).err();
        assert_eq!(no(good), None);
        for text in
            ["", "password", &good[1..], &good[..good.len() - 1], "DHHC-1:01", "DHHC-1:01::x:"]
        {
            assert_eq!(no(text), Some(SecretError::Form), "{text}");
        }
        assert_eq!(no(&good.replace(":01:", ":04:")), Some(SecretError::Transform));
        assert_eq!(no(&good.replace(":01:", ":02:")), Some(SecretError::Length));
        assert_eq!(no("DHHC-1:00:AAAA:"), Some(SecretError::Length));
        assert_eq!(no("DHHC-1:00:AAAAAAAA:"), Some(SecretError::Length));
        assert_eq!(no(&good.replace("ICUq", "ICUr")), Some(SecretError::Check));
    }
}
