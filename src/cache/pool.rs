//! The pages of a cache: how many sequences own each, and which are free.

use crate::error::Result;
use crate::heap;

/// Pages that are free or have owners.
#[derive(Debug)]
pub(super) struct Pool {
    /// How many sequences own each page.
    owners: Vec<u32>,
    /// A stack: the page freed last is taken first.
    free: Vec<i32>,
}

impl Pool {
    pub(super) fn new(pages: usize) -> Result<Self> {
        Ok(Self {
            owners: heap::list((0..pages).map(|_| 0))?,
            free: heap::list((0..pages as i32).rev())?,
        })
    }

    pub(super) fn pages(&self) -> usize {
        self.owners.len()
    }

    /// The number of free pages.
    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    pub(super) fn owners(&self, page: i32) -> u32 {
        self.owners[page as usize]
    }

    /// The number of pages with several owners.
    pub(super) fn shared(&self) -> usize {
        self.owners.iter().filter(|owners| **owners > 1).count()
    }

    /// Takes a free page for one owner, if there is one.
    pub(super) fn take(&mut self) -> Option<i32> {
        let page = self.free.pop()?;
        self.owners[page as usize] = 1;
        Some(page)
    }

    /// Adds an owner to a page that is not free.
    pub(super) fn share(&mut self, page: i32) {
        self.owners[page as usize] += 1;
    }

    /// Removes an owner; frees the page if it was the last.
    pub(super) fn give_back(&mut self, page: i32) {
        let owners = &mut self.owners[page as usize];
        *owners -= 1;
        if *owners == 0 {
            // There is room for every page.
            self.free.push(page);
        }
    }

    /// Undoes the last [`give_back`](Self::give_back), of this page.
    pub(super) fn take_back(&mut self, page: i32) {
        if self.owners[page as usize] == 0 {
            self.free.pop();
        }
        self.owners[page as usize] += 1;
    }

    /// The free pages, for tests.
    #[cfg(test)]
    pub(super) fn free_pages(&self) -> &[i32] {
        &self.free
    }
}
