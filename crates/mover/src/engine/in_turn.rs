//! The engines that do a request while the caller waits: buffered, direct, null, memory.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use farline_spec::FileEngine;
use farline_sys::file;

use super::memory::Memory;
use super::{Completed, OpenFile, Reader, Request, Writer};

/// One request at a time.
#[derive(Debug)]
pub(super) struct InTurn {
    engine: FileEngine,
    is_auto: bool,
    memory: Option<Arc<Memory>>,
    over: Option<Completed>,
}

impl InTurn {
    pub(super) fn new(engine: FileEngine, is_auto: bool) -> Self {
        let memory = (engine == FileEngine::Memory).then(Memory::shared);
        Self {
            engine,
            is_auto,
            memory,
            over: None,
        }
    }

    /// The file in whose place is something else, or the file itself back.
    fn in_place_of(&self, file: OwnedFd) -> io::Result<Result<OpenFile, OwnedFd>> {
        match (self.engine, &self.memory) {
            (FileEngine::Null, _) => OpenFile::zeros(file).map(Ok),
            (_, Some(memory)) => OpenFile::memory(file, Arc::clone(memory)).map(Ok),
            _ => Ok(Err(file)),
        }
    }

    fn settle(&mut self, request: Request, result: io::Result<usize>) {
        debug_assert!(
            self.over.is_none(),
            "more requests in flight than the engine accepts"
        );
        self.over = Some(Completed { request, result });
    }
}

impl Reader for InTurn {
    fn depth(&self) -> usize {
        1
    }

    fn adopt(&self, file: OwnedFd) -> io::Result<Arc<OpenFile>> {
        let opened = match self.in_place_of(file)? {
            Ok(opened) => opened,
            Err(file) if self.engine == FileEngine::Direct => OpenFile::direct_to_read(file, self.is_auto)?,
            Err(file) => {
                // Only advice: a file system that takes none reads all the same.
                let _ = file::sequential(file.as_fd());
                OpenFile::cached_to_read(file)
            }
        };
        Ok(Arc::new(opened))
    }

    fn adopt_small(&self, file: OwnedFd) -> io::Result<OpenFile> {
        let opened = self.in_place_of(file)?;
        Ok(opened.unwrap_or_else(OpenFile::cached_to_read))
    }

    fn submit(&mut self, mut request: Request) {
        let room = request.frame.room();
        let result = request.file.read(room, request.bytes, request.offset);
        self.settle(request, result);
    }

    fn complete(&mut self) -> Option<Completed> {
        self.over.take()
    }
}

impl Writer for InTurn {
    fn depth(&self) -> usize {
        1
    }

    fn adopt(&self, file: OwnedFd) -> io::Result<Arc<OpenFile>> {
        let opened = match self.in_place_of(file)? {
            Ok(opened) => opened,
            Err(file) if self.engine == FileEngine::Direct => OpenFile::direct_to_write(file, self.is_auto)?,
            Err(file) => OpenFile::cached_to_write(file)?,
        };
        Ok(Arc::new(opened))
    }

    fn submit(&mut self, request: Request) {
        let result = request.file.write(request.frame.payload(), request.offset);
        self.settle(request, result);
    }

    fn complete(&mut self) -> Option<Completed> {
        self.over.take()
    }
}
