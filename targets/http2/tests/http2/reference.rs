//! HPACK with a dynamic table, as plainly as can be: what a server does.

use picokube_http2::hpack::huffman;

/// RFC 7541 appendix A.
const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// A name and a value.
pub(crate) type Pair = (Vec<u8>, Vec<u8>);

/// Reads blocks, and remembers.
pub(crate) struct Reference {
    /// The newest comes first.
    pub(crate) table: Vec<Pair>,
    size: usize,
    /// What the reader has announced.
    limit: usize,
    /// The least of what it has announced since the last block, if that is less than the size: the next
    /// block has to begin with no more.
    due: Option<usize>,
}

impl Reference {
    pub(crate) fn new(limit: usize) -> Self {
        Self { table: Vec::new(), size: limit, limit, due: None }
    }

    /// The reader announces another size.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        if limit < self.size {
            self.due = Some(self.due.map_or(limit, |due| due.min(limit)));
        }
    }

    /// The most that the table may hold.
    pub(crate) fn limit(&self) -> usize {
        self.limit.min(4096)
    }

    /// The fields of a block, and whether each of them was never to be remembered.
    pub(crate) fn decode(&mut self, mut bytes: &[u8]) -> Option<Vec<(Pair, bool)>> {
        let mut fields = Vec::new();
        let mut updates = 0;
        while let Some(first) = bytes.first().copied() {
            let bytes = &mut bytes;
            if self.due.is_some() && !(0x20..0x40).contains(&first) {
                return None;
            }
            match first {
                0x80.. => {
                    let index = integer(bytes, 7)?;
                    fields.push((self.entry(index)?, false));
                }
                0x40.. => {
                    let field = self.literal(bytes, 6)?;
                    self.table.insert(0, field.clone());
                    self.evict();
                    fields.push((field, false));
                }
                0x20.. => {
                    let size = integer(bytes, 5)?;
                    updates += 1;
                    if self.due.take().is_some_and(|due| size > due)
                        || size > self.limit
                        || !fields.is_empty()
                        || updates > 2
                    {
                        return None;
                    }
                    self.size = size;
                    self.evict();
                }
                _ => fields.push((self.literal(bytes, 4)?, first & 0x10 != 0)),
            }
        }
        Some(fields)
    }

    /// What the table holds, as RFC 7541 §4.1 counts it.
    pub(crate) fn table_size(&self) -> usize {
        self.table.iter().map(|(name, value)| name.len() + value.len() + 32).sum()
    }

    fn entry(&self, index: usize) -> Option<Pair> {
        if let Some((name, value)) = STATIC.get(index.checked_sub(1)?) {
            return Some((name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        }
        self.table.get(index - STATIC.len() - 1).cloned()
    }

    fn literal(&self, bytes: &mut &[u8], prefix: u32) -> Option<Pair> {
        let name = match integer(bytes, prefix)? {
            0 => string(bytes)?,
            index => self.entry(index)?.0,
        };
        Some((name, string(bytes)?))
    }

    fn evict(&mut self) {
        while self.table_size() > self.size {
            self.table.pop();
        }
    }
}

fn integer(bytes: &mut &[u8], prefix: u32) -> Option<usize> {
    let most = (1usize << prefix) - 1;
    let mut value = usize::from(*bytes.split_off_first()?) & most;
    if value < most {
        return Some(value);
    }
    for shift in [0, 7, 14, 21] {
        let byte = usize::from(*bytes.split_off_first()?);
        value += (byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn string(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let is_huffman = *bytes.first()? & 0x80 != 0;
    let length = integer(bytes, 7)?;
    let raw = bytes.split_off(..length)?;
    if !is_huffman {
        return Some(raw.to_vec());
    }
    let (mut decoder, mut text) = (huffman::Decoder::START, Vec::new());
    for byte in raw {
        decoder.push(*byte, |symbol| text.push(symbol)).ok()?;
    }
    decoder.may_end().then_some(text)
}
