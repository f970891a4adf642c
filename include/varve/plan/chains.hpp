// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/plan/tables.hpp>

namespace varve::fusion {

/// A maker of chains from calls of a block. In a chain each call finds the result of the previous one in registers. For
/// this, calls that do not depend on one another may change places. Linear in the steps.
template <class Kernels>
class chain_maker {
public:
  /// Returns the steps with chains, made from the steps whose results are `needed` (2: and are numbers).
  static constexpr list<block_step> joined(list<block_step> const& steps, list<char> const& needed, Kernels& kernels) {
    chain_maker m(steps, needed, kernels);
    for (int k = 0; k < static_cast<int>(steps.size()); ++k)
      if (needed[static_cast<std::size_t>(steps[k].out)]) m.take(k);
    while (m.count_ > 0) m.close(0);
    return m.with_calls();
  }

private:
  static constexpr int most_open = 4;
  /// Calls that will form one chain. Neither they nor steps that need one of them are written yet.
  struct open_chain {
    int calls[most_links - 1]; // the first one takes two links
    int count;
    int number;
    int singles; // operands of one element, of which a chain has a limited number
  };
  list<block_step> const& steps_;
  list<char> const& needed_;
  Kernels& kernels_;
  list<block_step> made_{};
  list<int> chain_of_; // the number of the chain in which a value is made
  list<int> call_of_;  // the call by which a value is made
  open_chain open_[most_open]{};
  int count_ = 0, numbers_ = 0;
  int header_ = -1, singles_ = 0; // of the last chain

  constexpr chain_maker(list<block_step> const& steps, list<char> const& needed, Kernels& kernels)
      : steps_(steps), needed_(needed), kernels_(kernels) {
    int const values = static_cast<int>(needed.size());
    chain_of_.assign(values, -1), call_of_.assign(values, -1);
    made_.reserve(steps.size() + steps.size() / 2);
  }
  /// Returns the steps in which each chain of a single call is that call.
  constexpr list<block_step> with_calls() const {
    list<block_step> r;
    for (int k = 0; k < static_cast<int>(made_.size()); ++k) {
      bool const one = made_[k].what == block_step::kind::chain && made_[k].count == 2;
      if (!one) r.push_back(made_[k]);
      else r.push_back(steps_[call_of_[made_[k + 2].out]]), k += 2;
    }
    return r;
  }
  constexpr int held(open_chain const& c) const { return steps_[c.calls[c.count - 1]].out; }
  constexpr int singles_of(block_step const& s) const {
    int n = 0;
    for (int q = 0; q < s.count; ++q) n += (s.single >> q & 1) != 0 || needed_[s.in[q]] == 2;
    return n;
  }
  constexpr bool has_room(open_chain const& c, block_step const& s) const {
    return c.count < most_links - 1 && c.singles + singles_of(s) <= most_single;
  }
  constexpr int open_with(int value) const {
    for (int k = 0; k < count_; ++k)
      if (open_[k].number == chain_of_[value]) return k;
    return -1;
  }
  constexpr void take(int step) {
    block_step const& s = steps_[step];
    int to = -1;
    for (int q = 0; q < s.count && s.op != chain_op::none && to < 0; ++q)
      if (int const c = open_with(s.in[q]); c >= 0 && held(open_[c]) == s.in[q] && has_room(open_[c], s))
        to = open_[c].number;
    for (int q = 0; q < s.count; ++q)
      if (int const c = open_with(s.in[q]); c >= 0 && open_[c].number != to) close(c);
    if (s.op == chain_op::none) return made_.push_back(s);
    int at = 0;
    while (at < count_ && open_[at].number != to) ++at;
    if (at == count_) {
      if (count_ == most_open) close(0), at = count_;
      open_[count_++] = {{}, 0, numbers_++, 0};
    }
    open_[at].calls[open_[at].count++] = step;
    open_[at].singles += singles_of(s);
    call_of_[s.out] = step;
    chain_of_[s.out] = open_[at].number;
  }
  constexpr void close(int k) {
    open_chain const c = open_[k];
    for (int j = k + 1; j < count_; ++j) open_[j - 1] = open_[j];
    --count_;
    begin(steps_[c.calls[0]].type, c.count + 1, c.singles);
    int held = -1;
    for (int j = 0; j < c.count; ++j) {
      block_step const& s = steps_[c.calls[j]];
      if (j == 0) {
        int const first = s.op == chain_op::fma || s.op == chain_op::fnma ? 2 : 0;
        link(s, -1, chain_op::load, first), held = s.in[first];
      }
      continued(s, held);
      held = s.out;
    }
  }
  /// Extends the chain at the end of the steps if it has enough room; otherwise begins another one.
  constexpr void begin(dtype type, int links, int singles) {
    bool goes_on = header_ >= 0 && header_ + 1 + made_[header_].count == static_cast<int>(made_.size()) &&
                   made_[header_].type == type && made_[header_].count + links <= most_links &&
                   singles_ + singles <= most_single;
    if (!goes_on) {
      header_ = static_cast<int>(made_.size()), singles_ = 0;
      made_.push_back({block_step::kind::chain, type, false, kernels_.chain(type), -1, -1, 0, {}, 0});
    }
    made_[header_].count += links, singles_ += singles;
  }
  /// Writes a link for a call, with operands `a` and `b` of the call.
  constexpr void link(block_step const& s, int out, chain_op op, int a = -1, int b = -1) {
    block_step l{block_step::kind::link, s.type, false, -1, out, -1, 0, {}, 0, op, 0};
    for (int q : {a, b}) {
      if (q < 0) continue;
      if ((s.single >> q & 1) != 0) l.single = static_cast<char>(l.single | 1 << l.count);
      l.in[l.count++] = s.in[q];
    }
    made_.push_back(l);
  }
  /// Writes the link for a call with one operand in registers.
  constexpr void continued(block_step const& s, int held) {
    bool const first = s.in[0] == held, second = s.in[1] == held;
    int const other = first ? 1 : 0;
    switch (s.op) {
    case chain_op::mul:
      return first && second ? link(s, s.out, chain_op::square) : link(s, s.out, chain_op::mul, other);
    case chain_op::sub:
      return link(s, s.out, first ? chain_op::sub : chain_op::from, other);
    case chain_op::divide:
      return link(s, s.out, first ? chain_op::divide : chain_op::divides, other);
    case chain_op::fma:
    case chain_op::fnma: {
      bool const adds = s.op == chain_op::fma;
      if (s.in[2] == held) return link(s, s.out, adds ? chain_op::fma_on : chain_op::fnma_from, 0, 1);
      return link(s, s.out, adds ? chain_op::fma : chain_op::fnma, other, 2);
    }
    default:
      return link(s, s.out, chain_op::add, other);
    }
  }
};

} // namespace varve::fusion
