//! `Queue`: a queue with cheap insertions near each other, however long it is.

use std::collections::VecDeque;
use std::ops::{Index, IndexMut};

/// How many elements an insertion may move.
const MOVED: usize = if cfg!(test) { 4 } else { 2048 };

/// The elements up to the last insertion and at most `MOVED` after it, and those after them.
#[derive(Clone, Debug)]
pub struct Queue<T> {
    /// Empty only if `far` is.
    near: VecDeque<T>,
    far: VecDeque<T>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { near: VecDeque::new(), far: VecDeque::new() }
    }
}

impl<T> Index<usize> for Queue<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        self.near.get(index).unwrap_or_else(|| &self.far[index - self.near.len()])
    }
}

impl<T> IndexMut<usize> for Queue<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        let near = self.near.len();
        if index < near { &mut self.near[index] } else { &mut self.far[index - near] }
    }
}

impl<T> Queue<T> {
    pub fn len(&self) -> usize {
        self.near.len() + self.far.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.near.is_empty()
    }

    #[inline]
    pub fn front(&self) -> Option<&T> {
        self.near.front()
    }

    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        self.near.get(index).or_else(|| self.far.get(index - self.near.len()))
    }

    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let near = self.near.len();
        if index < near { self.near.get_mut(index) } else { self.far.get_mut(index - near) }
    }

    #[inline]
    pub fn push_back(&mut self, element: T) {
        if self.far.is_empty() && self.near.len() < MOVED {
            self.near.push_back(element);
        } else {
            self.far.push_back(element);
        }
    }

    #[inline]
    pub fn pop_front(&mut self) -> Option<T> {
        let first = self.near.pop_front();
        if self.near.is_empty() {
            std::mem::swap(&mut self.near, &mut self.far);
        }
        first
    }

    /// Inserts an element before the one at `index`.
    ///
    /// The time depends on the distance from the last insertion, not on the length of the queue.
    pub fn insert(&mut self, index: usize, element: T) {
        while self.near.len() < index
            && let Some(first) = self.far.pop_front()
        {
            self.near.push_back(first);
        }
        while self.near.len() > index + MOVED
            && let Some(last) = self.near.pop_back()
        {
            self.far.push_front(last);
        }
        self.near.insert(index, element);
    }
}

#[cfg(test)]
mod tests {
    use super::Queue;

    #[test]
    fn it_is_a_queue_wherever_elements_are_inserted() {
        let mut random = ssdlab_time::Random::new(3, "queue");
        let (mut queue, mut expected) = (Queue::default(), Vec::new());
        for number in 0..5000 {
            // It grows and shrinks in turn, so that each part of it is empty at times.
            match random.below(if number / 250 % 2 == 0 { 4 } else { 12 }) {
                0 | 4.. => {
                    let removed = (!expected.is_empty()).then(|| expected.remove(0));
                    assert_eq!(queue.pop_front(), removed);
                }
                1 => {
                    queue.push_back(number);
                    expected.push(number);
                }
                _ => {
                    let index = random.below(expected.len() as u64 + 1) as usize;
                    queue.insert(index, number);
                    expected.insert(index, number);
                }
            }
            let found: Vec<_> = (0..queue.len()).map(|index| *queue.get(index).unwrap()).collect();
            assert_eq!(found, expected);
            assert_eq!(queue.front(), expected.first());
            assert_eq!(queue.is_empty(), expected.is_empty());
            assert_eq!(queue.get_mut(expected.len()), None);
        }
    }
}
