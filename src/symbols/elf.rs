//! The parts of an ELF64 x86-64 object file that a tracer needs, read with bounds everywhere.
//!
//! The file is read piece by piece with `pread` and never mapped: a file that is cut or replaced
//! while we look at it gives an error, where a mapping would give SIGBUS. Each table is checked
//! against the length of the file before memory is taken for it.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use object::LittleEndian as LE;
use object::elf::{self, Dyn64, FileHeader64, NoteHeader64, ProgramHeader64, SectionHeader64};
use object::pod;

/// No table of a real object file comes near this; a sparse hostile file does.
const TABLE_LIMIT: u64 = 512 << 20;
/// More program headers than any linker writes.
const SEGMENT_LIMIT: u64 = 1 << 16;
/// `-ffunction-sections` objects have some hundred thousand at most.
const SECTION_LIMIT: u64 = 1 << 20;
/// Notes, interpreter and other small pieces.
const SMALL_LIMIT: u64 = 1 << 20;

/// Why a file is no object file that we can use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    /// The file could not be opened or read.
    #[error("{0}")]
    Io(String),
    /// The magic number is missing.
    #[error("not an ELF file")]
    NotElf,
    /// Too short to hold what its header says.
    #[error("the file is cut off: {what} lies behind the end of the file")]
    Truncated {
        /// The table or section that is missing.
        what: &'static str,
    },
    /// A 32-bit object.
    #[error("a 32-bit ELF file; only 64-bit x86-64 is supported")]
    Bits32,
    /// Another processor.
    #[error("an ELF file for {0}; only x86-64 is supported")]
    Machine(String),
    /// A relocatable object or a core file.
    #[error("{0}, not a program or a shared library")]
    Type(&'static str),
    /// The file contradicts itself.
    #[error("the ELF file is corrupt: {0}")]
    Corrupt(&'static str),
    /// A table is larger than any real one.
    #[error("the ELF file is corrupt: {what} of {size} bytes")]
    TooLarge {
        /// The table.
        what: &'static str,
        /// Its size in bytes by the header.
        size: u64,
    },
}

/// The bytes of an object: a file, or a copy out of a process's memory (the vDSO).
#[derive(Debug, Clone)]
pub enum Image {
    /// An open file and its length in bytes at the time of opening.
    File(Arc<File>, u64),
    /// A whole image.
    Memory(Arc<[u8]>),
}

impl Image {
    /// Opens a file. A FIFO without a writer is refused like every other thing that is no file, not waited for.
    pub fn open(path: &Path) -> Result<Image, ElfError> {
        Image::from_file(open_file(path).map_err(io)?)
    }

    /// Takes an open file.
    pub fn from_file(file: File) -> Result<Image, ElfError> {
        let data = file.metadata().map_err(io)?;
        if !data.is_file() {
            return Err(ElfError::Io(
                if data.is_dir() {
                    "Is a directory"
                } else {
                    "not a regular file"
                }
                .into(),
            ));
        }
        Ok(Image::File(Arc::new(file), data.len()))
    }

    /// The length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Image::File(_, len) => *len,
            Image::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Exactly `len` bytes at `offset`; `what` names them in the error.
    pub fn read(&self, offset: u64, len: u64, what: &'static str) -> Result<Vec<u8>, ElfError> {
        let end = offset
            .checked_add(len)
            .ok_or(ElfError::Truncated { what })?;
        if end > self.len() {
            return Err(ElfError::Truncated { what });
        }
        if len > TABLE_LIMIT {
            return Err(ElfError::TooLarge { what, size: len });
        }
        match self {
            Image::File(file, _) => {
                let mut bytes = vec![0; len as usize];
                file.read_exact_at(&mut bytes, offset)
                    .map_err(|error| match error.kind() {
                        std::io::ErrorKind::UnexpectedEof => ElfError::Truncated { what },
                        _ => io(error),
                    })?;
                Ok(bytes)
            }
            Image::Memory(bytes) => Ok(bytes[offset as usize..end as usize].to_vec()),
        }
    }
}

/// Opens for reading whatever the path names, and waits for nothing.
pub fn open_file(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
}

fn io(error: std::io::Error) -> ElfError {
    // The operating system's text without Rust's "(os error 2)".
    let text = error.to_string();
    ElfError::Io(text.split(" (os error").next().unwrap_or(&text).to_string())
}

/// A `PT_LOAD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Bytes in the file.
    pub file_size: u64,
    /// `p_vaddr`.
    pub address: u64,
    /// Bytes in memory.
    pub memory_size: u64,
    /// `PF_X`.
    pub executable: bool,
    /// `PF_W`.
    pub writable: bool,
}

impl Segment {
    /// Whether the file address lies in the segment as loaded.
    pub fn contains(&self, address: u64) -> bool {
        address >= self.address && address - self.address < self.memory_size
    }
}

/// A section header, without the name's hostile possibilities (it is cut at 256 bytes).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// `.text`.
    pub name: String,
    /// `sh_addr`.
    pub address: u64,
    /// Offset in the file, bytes.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// `sh_type`.
    pub kind: u32,
    /// `sh_link`.
    pub link: u32,
    /// `SHF_ALLOC`.
    pub allocated: bool,
    /// `SHF_EXECINSTR`.
    pub executable: bool,
    /// `SHF_TLS`.
    pub thread_local: bool,
}

impl Section {
    /// Whether the file address lies in the section as loaded; thread-local ones have no address.
    pub fn contains(&self, address: u64) -> bool {
        self.allocated
            && !self.thread_local
            && address >= self.address
            && address - self.address < self.size
    }
}

/// The headers of an object file.
#[derive(Debug, Clone)]
pub struct Elf {
    /// `ET_DYN`: loaded with a bias (a shared library, a position-independent program).
    pub relocatable: bool,
    /// All `PT_LOAD`, in the file's order.
    pub segments: Vec<Segment>,
    /// All sections, index as in `st_shndx`; empty where they were stripped.
    pub sections: Vec<Section>,
    /// `PT_INTERP`.
    pub interpreter: Option<String>,
    /// The GNU build id.
    pub build_id: Option<Vec<u8>>,
    /// Address and size in bytes of the dynamic table.
    pub dynamic: Option<(u64, u64)>,
    /// Address and size in bytes of `.eh_frame_hdr` (`PT_GNU_EH_FRAME`).
    pub frame_header: Option<(u64, u64)>,
}

impl Elf {
    /// Reads the headers.
    pub fn parse(image: &Image) -> Result<Elf, ElfError> {
        let header = read_header(image)?;
        let section_zero = read_section_zero(image, &header)?;
        let mut elf = Elf {
            relocatable: header.e_type.get(LE) == elf::ET_DYN,
            segments: Vec::new(),
            sections: Vec::new(),
            interpreter: None,
            build_id: None,
            dynamic: None,
            frame_header: None,
        };
        elf.read_segments(image, &header, section_zero.as_ref())?;
        elf.read_sections(image, &header, section_zero.as_ref())?;
        if elf.build_id.is_none() {
            elf.build_id = elf
                .section(".note.gnu.build-id")
                .filter(|section| section.size <= SMALL_LIMIT)
                .and_then(|section| {
                    image
                        .read(section.offset, section.size, "the build id")
                        .ok()
                })
                .and_then(|notes| find_build_id(&notes));
        }
        Ok(elf)
    }

    /// The first section of that name.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The section that holds a file address, and its index.
    pub fn section_at(&self, address: u64) -> Option<(usize, &Section)> {
        self.sections
            .iter()
            .enumerate()
            .find(|(_, section)| section.contains(address))
    }

    /// Whether instructions can lie at a file address: an executable section, or without section
    /// headers an executable segment.
    pub fn is_code(&self, address: u64) -> bool {
        self.in_executable_segment(address)
            && self
                .section_at(address)
                .is_none_or(|(_, section)| section.executable)
    }

    /// Whether the file address lies in an executable segment.
    pub fn in_executable_segment(&self, address: u64) -> bool {
        self.segments
            .iter()
            .any(|segment| segment.executable && segment.contains(address))
    }

    /// The file offset of a file address, and how many bytes of the segment follow it in the file.
    pub fn offset_of(&self, address: u64) -> Option<(u64, u64)> {
        self.segments.iter().find_map(|segment| {
            let inside = address.checked_sub(segment.address)?;
            let left = segment.file_size.checked_sub(inside)?;
            (left > 0).then_some(())?;
            Some((segment.offset.checked_add(inside)?, left))
        })
    }

    /// The file address of a file offset, by the segment that loads it; an executable one first.
    pub fn address_of(&self, offset: u64) -> Option<u64> {
        let loads = |segment: &&Segment| {
            offset >= segment.offset && offset - segment.offset < segment.file_size
        };
        let executable = self
            .segments
            .iter()
            .filter(loads)
            .find(|segment| segment.executable);
        let segment = executable.or_else(|| self.segments.iter().find(loads))?;
        Some(segment.address.wrapping_add(offset - segment.offset))
    }

    fn read_segments(
        &mut self,
        image: &Image,
        header: &FileHeader64<LE>,
        zero: Option<&SectionHeader64<LE>>,
    ) -> Result<(), ElfError> {
        let mut count = u64::from(header.e_phnum.get(LE));
        if count == u64::from(elf::PN_XNUM) {
            count = zero.map_or(count, |zero| u64::from(zero.sh_info.get(LE)));
        }
        if count == 0 {
            return Ok(());
        }
        if count > SEGMENT_LIMIT {
            return Err(ElfError::Corrupt("too many program headers"));
        }
        let entry = size_of::<ProgramHeader64<LE>>() as u64;
        if u64::from(header.e_phentsize.get(LE)) != entry {
            return Err(ElfError::Corrupt("program headers of an unknown size"));
        }
        let bytes = image.read(header.e_phoff.get(LE), count * entry, "the program headers")?;
        for program in pod_slice::<ProgramHeader64<LE>>(&bytes) {
            self.take_segment(image, program)?;
        }
        Ok(())
    }

    fn take_segment(
        &mut self,
        image: &Image,
        program: &ProgramHeader64<LE>,
    ) -> Result<(), ElfError> {
        let (offset, size) = (program.p_offset.get(LE), program.p_filesz.get(LE));
        match program.p_type.get(LE) {
            elf::PT_LOAD => {
                let (address, memory_size) = (program.p_vaddr.get(LE), program.p_memsz.get(LE));
                if address.checked_add(memory_size).is_none() || offset.checked_add(size).is_none()
                {
                    return Err(ElfError::Corrupt(
                        "a segment wraps around the address space",
                    ));
                }
                let flags = program.p_flags.get(LE);
                self.segments.push(Segment {
                    offset,
                    file_size: size,
                    address,
                    memory_size,
                    executable: flags.0 & elf::PF_X.0 != 0,
                    writable: flags.0 & elf::PF_W.0 != 0,
                });
            }
            elf::PT_INTERP if size <= 4096 => {
                let bytes = image.read(offset, size, "the interpreter's path")?;
                self.interpreter = Some(text(&bytes, 4096));
            }
            elf::PT_NOTE if size <= SMALL_LIMIT && self.build_id.is_none() => {
                let notes = image.read(offset, size, "the notes")?;
                self.build_id = find_build_id(&notes);
            }
            elf::PT_GNU_EH_FRAME => self.frame_header = Some((program.p_vaddr.get(LE), size)),
            elf::PT_DYNAMIC => self.dynamic = Some((program.p_vaddr.get(LE), size)),
            _ => {}
        }
        Ok(())
    }

    fn read_sections(
        &mut self,
        image: &Image,
        header: &FileHeader64<LE>,
        zero: Option<&SectionHeader64<LE>>,
    ) -> Result<(), ElfError> {
        let Some(zero) = zero else { return Ok(()) };
        let count = match u64::from(header.e_shnum.get(LE)) {
            0 => zero.sh_size.get(LE),
            count => count,
        };
        if count > SECTION_LIMIT {
            return Err(ElfError::Corrupt("too many section headers"));
        }
        let entry = size_of::<SectionHeader64<LE>>() as u64;
        let bytes = image.read(header.e_shoff.get(LE), count * entry, "the section headers")?;
        let headers = pod_slice::<SectionHeader64<LE>>(&bytes);
        let names = match header.e_shstrndx.get(LE) {
            elf::SHN_XINDEX => zero.sh_link.get(LE),
            index => u32::from(index.0),
        };
        let names = match headers.get(names as usize) {
            Some(strings) if names != 0 && strings.sh_size.get(LE) <= TABLE_LIMIT => image.read(
                strings.sh_offset.get(LE),
                strings.sh_size.get(LE),
                "the section names",
            )?,
            _ => Vec::new(),
        };
        self.sections = headers
            .iter()
            .map(|section| take_section(section, &names))
            .collect();
        Ok(())
    }
}

fn take_section(section: &SectionHeader64<LE>, names: &[u8]) -> Section {
    let flags = section.sh_flags.get(LE).0;
    Section {
        name: text(
            names
                .get(section.sh_name.get(LE) as usize..)
                .unwrap_or_default(),
            256,
        ),
        address: section.sh_addr.get(LE),
        offset: section.sh_offset.get(LE),
        size: section.sh_size.get(LE),
        kind: section.sh_type.get(LE).0,
        link: section.sh_link.get(LE),
        allocated: flags & elf::SHF_ALLOC.0 != 0,
        executable: flags & elf::SHF_EXECINSTR.0 != 0,
        thread_local: flags & elf::SHF_TLS.0 != 0,
    }
}

fn read_header(image: &Image) -> Result<FileHeader64<LE>, ElfError> {
    let head = image.read(0, image.len().min(64), "the ELF header")?;
    if head.get(..4) != Some(&[0x7f, b'E', b'L', b'F']) {
        return Err(ElfError::NotElf);
    }
    let byte = |index: usize| head.get(index).copied().unwrap_or(0);
    let half = |index| match byte(5) {
        2 => u16::from_be_bytes([byte(index), byte(index + 1)]),
        _ => u16::from_le_bytes([byte(index), byte(index + 1)]),
    };
    let machine = half(18);
    match (byte(4), byte(5)) {
        _ if head.len() < 20 => {
            return Err(ElfError::Truncated {
                what: "the ELF header",
            });
        }
        // i386 and x32 say 32-bit, which is more to the point than the machine.
        (1, _) if machine == 3 || machine == elf::EM_X86_64.0 => return Err(ElfError::Bits32),
        (1 | 2, 1 | 2) if machine != elf::EM_X86_64.0 => {
            return Err(ElfError::Machine(machine_name(machine)));
        }
        (2, 1) => {}
        _ => return Err(ElfError::Corrupt("an unknown class or byte order")),
    }
    let (header, _) =
        pod::from_bytes::<FileHeader64<LE>>(&head).map_err(|()| ElfError::Truncated {
            what: "the ELF header",
        })?;
    match header.e_type.get(LE) {
        elf::ET_EXEC | elf::ET_DYN => Ok(*header),
        elf::ET_REL => Err(ElfError::Type("a relocatable object file (.o)")),
        elf::ET_CORE => Err(ElfError::Type("a core file")),
        _ => Err(ElfError::Corrupt("an unknown type of file")),
    }
}

fn machine_name(machine: u16) -> String {
    let name = match machine {
        2 | 18 | 43 => "SPARC",
        3 => "i386",
        8 => "MIPS",
        20 => "PowerPC",
        21 => "64-bit PowerPC",
        22 => "s390",
        40 => "32-bit ARM",
        50 => "IA-64",
        183 => "AArch64",
        243 => "RISC-V",
        247 => "BPF",
        258 => "LoongArch",
        other => return format!("machine number {other}"),
    };
    name.to_string()
}

fn read_section_zero(
    image: &Image,
    header: &FileHeader64<LE>,
) -> Result<Option<SectionHeader64<LE>>, ElfError> {
    let offset = header.e_shoff.get(LE);
    if offset == 0 {
        return Ok(None);
    }
    let size = size_of::<SectionHeader64<LE>>();
    if usize::from(header.e_shentsize.get(LE)) != size {
        return Err(ElfError::Corrupt("section headers of an unknown size"));
    }
    let bytes = image.read(offset, size as u64, "the section headers")?;
    Ok(pod_slice::<SectionHeader64<LE>>(&bytes).first().copied())
}

/// As many whole records as the bytes hold.
pub fn pod_slice<T: pod::Pod>(bytes: &[u8]) -> &[T] {
    let count = bytes.len() / size_of::<T>();
    pod::slice_from_bytes(bytes, count).map_or(&[], |(records, _)| records)
}

/// The text up to the first NUL, at most `limit` bytes.
fn text(bytes: &[u8], limit: usize) -> String {
    let bytes = &bytes[..bytes.len().min(limit)];
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// `NT_GNU_BUILD_ID` in a run of notes.
pub fn find_build_id(mut notes: &[u8]) -> Option<Vec<u8>> {
    while let Ok((header, rest)) = pod::from_bytes::<NoteHeader64<LE>>(notes) {
        let name_size = header.n_namesz.get(LE) as usize;
        let description_size = header.n_descsz.get(LE) as usize;
        let name = rest.get(..name_size)?;
        let rest = rest.get(name_size.checked_next_multiple_of(4)?..)?;
        let description = rest.get(..description_size)?;
        if name == b"GNU\0"
            && header.n_type.get(LE).0 == elf::NT_GNU_BUILD_ID.0
            && description_size <= 64
        {
            return Some(description.to_vec());
        }
        notes = rest.get(description_size.checked_next_multiple_of(4)?..)?;
    }
    None
}

/// The entries of a dynamic table, up to its end mark.
pub fn dynamic_entries(bytes: &[u8]) -> impl Iterator<Item = (u64, u64)> {
    pod_slice::<Dyn64<LE>>(bytes)
        .iter()
        .map(|entry| (entry.d_tag.get(LE).0 as u64, entry.d_val.get(LE)))
        .take_while(|(tag, _)| *tag != 0)
}
