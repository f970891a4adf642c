// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/value/tensor.hpp>

#include <cstdint>
#include <vector>

namespace varve::detail {

/// A map from tensors to nodes of a graph, for a tracer that is a mode and whose values carry no mark. It keeps the
/// values alive, because addresses of tensors are reused. It drops values whose memory is not used elsewhere.
class known_values {
public:
  /// Returns the node of a value with this very handle, or -1.
  int exact(tensor const& t) const;
  /// Returns the node of a value found by its handle or by its place in memory, or -1. Autograd stores values under
  /// other handles. Among several values it returns the first that `may_be` accepts, else the first.
  template <class P>
  int alike(tensor const& t, P const& may_be) const;
  void remember(tensor const& v, int node);
  /// Notes that everything written into the memory of a value so far is in the graph.
  void written(tensor const& v);
  /// True if something was written into the memory of a value that is not in the graph.
  bool is_overtaken(tensor const& t) const;

private:
  struct known {
    tensor value;
    int node;
    std::uint32_t writes;
  };
  std::vector<std::vector<known>> places_; // a power of two of them, indexed by a hash of the memory
  std::size_t count_ = 0;

  std::size_t place_of(tensor const& t) const {
    return (reinterpret_cast<std::uintptr_t>(t.id()->store) * 0x9E3779B97F4A7C15u >> 32) & (places_.size() - 1);
  }
  /// True if both tensors share the same storage object, and not one that stands for it.
  static bool is_in_memory(tensor const& a, tensor const& b) { return a.id()->store == b.id()->store; }
  static bool is_held_elsewhere(known const& k, std::vector<known> const& there);
  void sweep();
};

template <class P>
int known_values::alike(tensor const& t, P const& may_be) const {
  if (int const n = exact(t); n >= 0 || places_.empty()) return n;
  auto const lies_alike = [](layout const& a, layout const& b) {
    return known_equal(a.sizes, b.sizes) && known_equal(a.strides, b.strides) && known_equal(a.offset, b.offset);
  };
  int first = -1;
  for (known const& k : places_[place_of(t)])
    if (is_in_memory(k.value, t) && k.value.dtype() == t.dtype() && lies_alike(k.value.where(), t.where())) {
      if (may_be(k.node)) return k.node;
      if (first < 0) first = k.node;
    }
  return first;
}

#if VARVE_DEFINES
VARVE_LIBRARY int known_values::exact(tensor const& t) const {
  if (places_.empty()) return -1;
  for (known const& k : places_[place_of(t)])
    if (k.value.is(t)) return k.node;
  return -1;
}
VARVE_LIBRARY void known_values::remember(tensor const& v, int node) {
  if (count_ >= places_.size()) sweep();
  std::vector<known>& there = places_[place_of(v)];
  for (known& k : there)
    if (k.value.is(v)) return void(k = {v, node, v.writes()});
  there.push_back({v, node, v.writes()});
  ++count_;
}
VARVE_LIBRARY void known_values::written(tensor const& v) {
  if (places_.empty()) return;
  for (known& k : places_[place_of(v)])
    if (is_in_memory(k.value, v)) k.writes = v.writes();
}
VARVE_LIBRARY bool known_values::is_overtaken(tensor const& t) const {
  if (places_.empty()) return false;
  for (known const& k : places_[place_of(t)])
    if (is_in_memory(k.value, t) && k.writes != t.writes()) return true;
  return false;
}
VARVE_LIBRARY bool known_values::is_held_elsewhere(known const& k, std::vector<known> const& there) {
  std::uint32_t ours = 0;
  for (known const& o : there) {
    if (!is_in_memory(o.value, k.value)) continue;
    if (o.value.id()->refs.n.load(std::memory_order_acquire) > 1) return true;
    ++ours;
  }
  storage const* const s = k.value.id()->store;
  return s && s->refs.n.load(std::memory_order_acquire) > ours;
}
VARVE_LIBRARY void known_values::sweep() {
  std::vector<known> left;
  for (auto const& there : places_)
    for (known const& k : there)
      if (is_held_elsewhere(k, there)) left.push_back(k);
  std::size_t places = 64;
  while (places < 2 * left.size() + 64) places *= 2;
  std::vector<std::vector<known>>(places).swap(places_); // `assign` would copy
  count_ = left.size();
  for (known& k : left) places_[place_of(k.value)].push_back(k);
}
#endif

} // namespace varve::detail
