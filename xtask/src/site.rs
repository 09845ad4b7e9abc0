//! The finished site: one folder named by its contents, each file also compressed, and a manifest that the server reads.
//!
//! `target/site/manifest.json` is the whole agreement with the server: `hash`, `pkg` (the folder's path in a URL, without a leading
//! slash), `output_name`, the URLs `style`, `font` and `chart`, and the sizes of what has a budget.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::bundle::OUTPUT_NAME;
use crate::failure::Failure;
use crate::files;

/// Hex digits of the hash in the folder's name: 64 bits.
const HASH_DIGITS: usize = 16;

/// The font file that every page needs at once, and so preloads.
const FONT: &str = "inter-latin-wght-normal.woff2";

/// What is in the site.
#[derive(Debug, PartialEq)]
pub struct Manifest {
    /// The first digits of the SHA-256 over all paths and contents of the folder.
    pub hash: String,
    /// Brotli bytes of the wasm, which has a budget.
    pub wasm_br_bytes: usize,
    /// Brotli bytes of the Chart.js bundle, counted apart since it is loaded on first use.
    pub chart_br_bytes: usize,
}

impl Manifest {
    /// The folder as a URL path without its leading slash: `pkg/0123456789abcdef`.
    pub fn pkg(&self) -> String {
        format!("pkg/{}", self.hash)
    }

    /// Reads the manifest of a finished site; nothing when there is none.
    pub fn read(site: &Path) -> Option<Manifest> {
        let text = fs::read_to_string(site.join("manifest.json")).ok()?;
        let value: serde_json::Value = serde_json::from_str(&text).ok()?;
        let bytes = |name: &str| value[name].as_u64().and_then(|n| usize::try_from(n).ok());
        Some(Manifest {
            hash: value["hash"].as_str()?.to_owned(),
            wasm_br_bytes: bytes("wasm_br_bytes")?,
            chart_br_bytes: bytes("chart_br_bytes")?,
        })
    }

    fn to_json(&self) -> String {
        let pkg = self.pkg();
        let value = json!({
            "hash": self.hash,
            "pkg": pkg,
            "output_name": OUTPUT_NAME,
            "chart": format!("/{pkg}/chart.js"),
            "style": format!("/{pkg}/{OUTPUT_NAME}.css"),
            "font": format!("/{pkg}/{FONT}"),
            "wasm_br_bytes": self.wasm_br_bytes,
            "chart_br_bytes": self.chart_br_bytes,
        });
        format!("{value:#}\n")
    }
}

/// Replaces `site` by what was made, plus the static files of `public`.
pub fn write(made: &Path, public: &Path, site: &Path) -> Result<Manifest, Failure> {
    let contents = read_all(made)?;
    let hash = hash_of(&contents);
    files::renew(site)?;
    let pkg = site.join("pkg").join(&hash);
    let sizes = place_all(&contents, &pkg)?;
    place_all(&read_all(public)?, site)?;
    let br = |name: &str| sizes.get(Path::new(name)).copied().unwrap_or_default();
    let manifest = Manifest {
        hash,
        wasm_br_bytes: br(&format!("{OUTPUT_NAME}_bg.wasm")),
        chart_br_bytes: br("chart.js"),
    };
    let path = site.join("manifest.json");
    fs::write(&path, manifest.to_json()).map_err(Failure::disk("write", &path))?;
    Ok(manifest)
}

/// Relative path and contents of every file.
type Contents = BTreeMap<PathBuf, Vec<u8>>;

fn read_all(folder: &Path) -> Result<Contents, Failure> {
    let mut contents = Contents::new();
    for path in files::below(folder)? {
        let bytes = fs::read(&path).map_err(Failure::disk("read", &path))?;
        let name = path.strip_prefix(folder).unwrap_or(&path).to_path_buf();
        contents.insert(name, bytes);
    }
    Ok(contents)
}

fn hash_of(contents: &Contents) -> String {
    let mut hash = Sha256::new();
    for (name, bytes) in contents {
        let name = name.as_os_str().as_encoded_bytes();
        for part in [name, bytes.as_slice()] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
    }
    files::hex(&hash.finalize())[..HASH_DIGITS].to_owned()
}

/// Writes every file, and beside it a `.br` and a `.gz` where those are smaller. Gives back the brotli sizes.
fn place_all(contents: &Contents, folder: &Path) -> Result<BTreeMap<PathBuf, usize>, Failure> {
    let jobs: Vec<(&PathBuf, &Vec<u8>)> = contents.iter().collect();
    let next = AtomicUsize::new(0);
    let sizes = Mutex::new(BTreeMap::new());
    let work = || -> Result<(), Failure> {
        while let Some((name, bytes)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let br = place_one(&folder.join(name), bytes)?;
            let mut sizes = sizes
                .lock()
                .unwrap_or_else(|poisoned| poisoned.into_inner());
            sizes.insert((*name).clone(), br);
        }
        Ok(())
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let running: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        running
            .into_iter()
            .try_for_each(|worker| match worker.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            })
    })?;
    Ok(sizes
        .into_inner()
        .unwrap_or_else(|poisoned| poisoned.into_inner()))
}

fn place_one(path: &Path, bytes: &[u8]) -> Result<usize, Failure> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(Failure::disk("create", folder))?;
    }
    fs::write(path, bytes).map_err(Failure::disk("write", path))?;
    if path.extension().is_some_and(|e| e == "woff2" || e == "png") {
        return Ok(bytes.len());
    }
    let br = brotli(bytes).map_err(Failure::disk("compress", path))?;
    let gz = gzip(bytes).map_err(Failure::disk("compress", path))?;
    for (ending, packed) in [("br", &br), ("gz", &gz)] {
        if packed.len() < bytes.len() {
            let beside = with_ending(path, ending);
            fs::write(&beside, packed).map_err(Failure::disk("write", beside))?;
        }
    }
    Ok(br.len())
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    PathBuf::from(name)
}

fn brotli(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut packed = Vec::new();
    // Buffer size, highest quality, largest window that every browser takes.
    let mut writer = brotli::CompressorWriter::new(&mut packed, 4096, 11, 22);
    writer.write_all(bytes)?;
    writer.flush()?;
    drop(writer);
    Ok(packed)
}

fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut writer = GzEncoder::new(Vec::new(), Compression::best());
    writer.write_all(bytes)?;
    writer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(files: &[(&str, &str)]) -> Contents {
        files
            .iter()
            .map(|(name, text)| (PathBuf::from(name), text.as_bytes().to_vec()))
            .collect()
    }

    #[test]
    fn the_hash_changes_with_a_name_with_a_byte_and_with_where_one_file_ends() {
        let plain = hash_of(&contents(&[("a", "12"), ("b", "3")]));
        assert_eq!(plain, hash_of(&contents(&[("b", "3"), ("a", "12")])));
        for other in [
            &[("a", "12"), ("c", "3")][..],
            &[("a", "1"), ("b", "23")],
            &[("a", "12")],
        ] {
            assert_ne!(plain, hash_of(&contents(other)));
        }
        assert_eq!(plain.len(), HASH_DIGITS);
    }

    #[test]
    fn what_the_manifest_says_is_read_back() -> Result<(), Failure> {
        let manifest = Manifest {
            hash: "00ff".into(),
            wasm_br_bytes: 57_000,
            chart_br_bytes: 50_000,
        };
        let folder = std::env::temp_dir().join(format!("muster-manifest-{}", std::process::id()));
        files::renew(&folder)?;
        fs::write(folder.join("manifest.json"), manifest.to_json())
            .map_err(Failure::disk("write", &folder))?;
        assert_eq!(Manifest::read(&folder), Some(manifest));
        fs::remove_dir_all(&folder).map_err(Failure::disk("remove", &folder))
    }

    #[test]
    fn a_packed_file_unpacks_to_itself() -> std::io::Result<()> {
        let text = "a gang starts whole or not at all\n"
            .repeat(200)
            .into_bytes();
        let mut back = Vec::new();
        brotli::BrotliDecompress(&mut brotli(&text)?.as_slice(), &mut back)?;
        assert_eq!(back, text);
        let packed = gzip(&text)?;
        let mut back = Vec::new();
        std::io::Read::read_to_end(
            &mut flate2::read::GzDecoder::new(packed.as_slice()),
            &mut back,
        )?;
        assert_eq!(back, text);
        Ok(())
    }
}
