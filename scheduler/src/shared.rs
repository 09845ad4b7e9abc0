//! A map whose values are shared between copies of it.
//!
//! A cycle that makes claims goes on with a copy of the state, and the control plane plans on one while it writes. With ten
//! thousand jobs a copy of each would cost more than the cycle; so a copy shares them, and one that changes is copied then.

use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::collections::{BTreeMap, btree_map};
use std::ops::{Index, RangeBounds};
use std::sync::Arc;

/// An ordered map; a clone of it costs one count per value.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
#[serde(bound(
    serialize = "K: Serialize, V: Serialize",
    deserialize = "K: Deserialize<'de> + Ord, V: Deserialize<'de>"
))]
pub struct SharedMap<K, V>(BTreeMap<K, Arc<V>>);

impl<K: Ord, V> SharedMap<K, V> {
    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.0.get(key).map(Arc::as_ref)
    }

    /// True if the key has one.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.0.contains_key(key)
    }

    /// The value of a key, to be changed: only here.
    pub fn get_mut<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
        V: Clone,
    {
        self.0.get_mut(key).map(Arc::make_mut)
    }

    /// Sets a value; the one before it, if there was one.
    pub fn insert(&mut self, key: K, value: impl Into<Arc<V>>) -> Option<Arc<V>> {
        self.0.insert(key, value.into())
    }

    /// Takes a value out.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<Arc<V>>
    where
        K: Borrow<Q>,
    {
        self.0.remove(key)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All keys, in order.
    pub fn keys(&self) -> btree_map::Keys<'_, K, Arc<V>> {
        self.0.keys()
    }

    /// All values, in order of their keys.
    pub fn values(&self) -> Values<'_, K, V> {
        Values(self.0.values())
    }

    /// Keys with values, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.0.iter().map(|(key, value)| (key, value.as_ref()))
    }

    /// Those of a range of keys, in order.
    pub fn range(&self, range: impl RangeBounds<K>) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.0
            .range(range)
            .map(|(key, value)| (key, value.as_ref()))
    }
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<K: Clone, V> Clone for SharedMap<K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: Ord + Borrow<Q>, V, Q: Ord + ?Sized> Index<&Q> for SharedMap<K, V> {
    type Output = V;

    fn index(&self, key: &Q) -> &V {
        &self.0[key]
    }
}

/// Values in order of their keys.
#[derive(Debug)]
pub struct Values<'a, K, V>(btree_map::Values<'a, K, Arc<V>>);

impl<K, V> Clone for Values<'_, K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<'a, K, V> Iterator for Values<'a, K, V> {
    type Item = &'a V;

    fn next(&mut self) -> Option<&'a V> {
        self.0.next().map(Arc::as_ref)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<K, V> DoubleEndedIterator for Values<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(Arc::as_ref)
    }
}

impl<K, V> ExactSizeIterator for Values<'_, K, V> {}

impl<'a, K, V> IntoIterator for &'a SharedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter =
        std::iter::Map<btree_map::Iter<'a, K, Arc<V>>, fn((&'a K, &'a Arc<V>)) -> (&'a K, &'a V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().map(|(key, value)| (key, value.as_ref()))
    }
}
