// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/emit/step.hpp>
#include <varve/kernel/matmul_block.hpp>
#include <varve/plan/tables.hpp>

/// @file
/// Chains of arithmetic over blocks: several operators are applied while a value is in registers. A few registers of
/// elements at a time pass through all links of a chain, and a switch selects the operation of each link. One kernel
/// serves all chains. Its branches repeat for all elements of a block, so processors predict them.
namespace varve::fusion {

namespace detail {
/// A link with the addresses of its operands, or the registers that contain them. An operand of one element is repeated
/// in memory, and its address does not advance.
template <class T>
struct chain_link {
  unsigned char code; // `chain_code`
  chain_op op;
  char a_kept, b_kept, keep;
  bool leaves; // whether the result goes anywhere else than to the next link
  T const *a, *b;
  T* out;
  std::size_t a_moves, b_moves, out_moves; // all bits, or none
};
/// Returns the code of a link: its operation and the location of its first operand, for a single switch.
constexpr unsigned char chain_code(chain_op op, int kept) {
  return static_cast<unsigned char>(3 * static_cast<int>(op) + kept);
}
/// The number of registers that are processed together. Three times as many are in use.
inline constexpr int chain_width = kernel::detail::registers == 32 ? 8 : 4;

/// A few registers of elements, from element `i` on; unless they are `Whole`, one register of `left` elements. (Each
/// register has a constant number, because in loops the compiler would place them in memory.) Chains keep values in `s`
/// and `t`.
template <class T, bool Whole, std::size_t... K>
struct chain_registers {
  using V = kernel::batch<T>;
  static constexpr std::size_t lanes = kernel::lanes<T>;
  std::size_t i, left;

  VARVE_INLINE V at(T const* p, std::size_t k) const {
    if constexpr (Whole) return kernel::load(p + k * lanes);
    else return kernel::detail::load_live(p, static_cast<std::ptrdiff_t>(left));
  }
  VARVE_INLINE void put(T* p, V const* r) const {
    if constexpr (Whole) (kernel::store(p + K * lanes, r[K]), ...);
    else kernel::detail::store_live(p, static_cast<std::ptrdiff_t>(left), r[0]);
  }
  /// Loads an operand from memory, or returns it from the registers that keep it.
  template <int From>
  VARVE_INLINE V operand(T const* p, V const* s, V const* t, std::size_t k) const {
    if constexpr (From == 0) return at(p, k);
    else if constexpr (From == 1) return s[k];
    else return t[k];
  }
  template <int From, class F>
  VARVE_INLINE void one(F f, V* r, V const* s, V const* t, T const* a) const {
    ((r[K] = f(r[K], operand<From>(a, s, t, K))), ...);
  }
  template <int From, class F>
  VARVE_INLINE void two(F f, V* r, V const* s, V const* t, T const* a, T const* b) const {
    ((r[K] = f(r[K], operand<From>(a, s, t, K), at(b, K))), ...);
  }
  template <class F>
  VARVE_INLINE void two(F f, chain_link<T> const& l, V* r, V const* s, V const* t, T const* a, T const* b) const {
    if (l.a_kept == 0) two<0>(f, r, s, t, a, b);
    else if (l.a_kept == 1) two<1>(f, r, s, t, a, b);
    else two<2>(f, r, s, t, a, b);
  }
  /// Returns the address of an operand; one that is kept in registers is stored to `spilled` first. For links that are
  /// too rare to have code for each location of their operands.
  VARVE_INLINE T const* in_memory(char kept, T const* p, T* spilled, V const* s, V const* t) const {
    if (kept == 0) return p;
    if (kept == 1) put(spilled, s); // two calls, because registers have no address that could be selected
    else put(spilled, t);
    return spilled;
  }
  VARVE_INLINE void other(chain_link<T> const& l, V* r, V const* s, V const* t, T const* a) const {
    alignas(64) T spilled[sizeof...(K) * lanes];
    if (l.op == chain_op::square) return void(((r[K] = r[K] * r[K]), ...));
    if (l.op == chain_op::divide || l.op == chain_op::divides) {
      T const* const x = in_memory(l.a_kept, a, spilled, s, t);
      if (l.op == chain_op::divide) ((r[K] = r[K] / at(x, K)), ...);
      else ((r[K] = at(x, K) / r[K]), ...);
      return;
    }
    T const* const b = in_memory(l.b_kept, l.b + (i & l.b_moves), spilled, s, t);
    if (l.op == chain_op::fma)
      two([](V const& v, V const& x, V const& y) { return detail::multiply_add(v, x, y); }, l, r, s, t, a, b);
    else if (l.op == chain_op::fma_on)
      two([](V const& v, V const& x, V const& y) { return detail::multiply_add(x, y, v); }, l, r, s, t, a, b);
    else if (l.op == chain_op::fnma)
      two([](V const& v, V const& x, V const& y) { return detail::subtract_product(v, x, y); }, l, r, s, t, a, b);
    else two([](V const& v, V const& x, V const& y) { return detail::subtract_product(x, y, v); }, l, r, s, t, a, b);
  }
  VARVE_INLINE void leave(chain_link<T> const& l, V const* r, V* s, V* t) const {
    if (l.keep == 1) ((s[K] = r[K]), ...);
    else if (l.keep == 2) ((t[K] = r[K]), ...);
    if (l.out) put(l.out + (i & l.out_moves), r);
  }
  VARVE_INLINE void run(chain_link<T> const* l, chain_link<T> const* end) const {
    V r[]{((void)K, V(T(0)))...}, s[]{((void)K, V(T(0)))...}, t[]{((void)K, V(T(0)))...};
    auto const take = [](V const&, V const& x) { return x; };
    auto const add = [](V const& v, V const& x) { return V(v + x); };
    auto const sub = [](V const& v, V const& x) { return V(v - x); };
    auto const from = [](V const& v, V const& x) { return V(x - v); };
    auto const mul = [](V const& v, V const& x) { return V(v * x); };
    for (; l != end; ++l) {
      T const* const a = l->a + (i & l->a_moves);
      switch (l->code) {
      case chain_code(chain_op::load, 0):
        one<0>(take, r, s, t, a);
        break;
      case chain_code(chain_op::load, 1):
        one<1>(take, r, s, t, a);
        break;
      case chain_code(chain_op::load, 2):
        one<2>(take, r, s, t, a);
        break;
      case chain_code(chain_op::add, 0):
        one<0>(add, r, s, t, a);
        break;
      case chain_code(chain_op::add, 1):
        one<1>(add, r, s, t, a);
        break;
      case chain_code(chain_op::add, 2):
        one<2>(add, r, s, t, a);
        break;
      case chain_code(chain_op::sub, 0):
        one<0>(sub, r, s, t, a);
        break;
      case chain_code(chain_op::sub, 1):
        one<1>(sub, r, s, t, a);
        break;
      case chain_code(chain_op::sub, 2):
        one<2>(sub, r, s, t, a);
        break;
      case chain_code(chain_op::from, 0):
        one<0>(from, r, s, t, a);
        break;
      case chain_code(chain_op::from, 1):
        one<1>(from, r, s, t, a);
        break;
      case chain_code(chain_op::from, 2):
        one<2>(from, r, s, t, a);
        break;
      case chain_code(chain_op::mul, 0):
        one<0>(mul, r, s, t, a);
        break;
      case chain_code(chain_op::mul, 1):
        one<1>(mul, r, s, t, a);
        break;
      case chain_code(chain_op::mul, 2):
        one<2>(mul, r, s, t, a);
        break;
      default:
        other(*l, r, s, t, a);
      }
      if (l->leaves) leave(*l, r, s, t);
    }
  }
};
template <class T, std::size_t... K>
VARVE_INLINE void run_links(chain_link<T> const* l, chain_link<T> const* end, std::size_t n,
                            std::index_sequence<K...>) {
  constexpr std::size_t L = kernel::lanes<T>, some = sizeof...(K) * L;
  std::size_t i = 0;
  for (; i + some <= n; i += some) chain_registers<T, true, K...>{i, 0}.run(l, end);
  for (; i < n; i += L) chain_registers<T, false, 0>{i, n - i < L ? n - i : L}.run(l, end);
}
/// The kernel of chains: `step` is the chain's step in the program, `places` are the places of its block.
template <class T>
__attribute__((flatten)) void run_chain(std::size_t n, void* step, void const* const* places) {
  constexpr std::size_t L = kernel::lanes<T>, some = L * chain_width;
  auto const* const s = static_cast<block_step const*>(step);
  auto* const at = reinterpret_cast<std::byte const* const*>(places);
  alignas(64) T near_values[most_near][some];
  alignas(64) T repeated[most_single][some];
  chain_link<T> links[most_links];
  int count = 0;
  for (int k = 0; k < s->count; ++k) {
    block_step const& of = s[1 + k];
    auto const operand = [&](int o, char& kept, T const*& p, std::size_t& moves) {
      int const from = o < of.count ? of.in[o] : ~0; // a missing operand is not read
      bool const number = from == in_link, single = (of.single >> o & 1) != 0;
      kept = static_cast<char>(~from >= most_near && !number ? 1 + ~from - most_near : 0);
      p = from >= 0 ? reinterpret_cast<T const*>(at[from]) : near_values[kept || number ? 0 : ~from];
      moves = from >= 0 ? ~std::size_t{0} : 0;
      if (!number && (!single || kept)) return;
      T const one = number ? kernel::cast<T>(of.value) : *p;
      for (T& x : repeated[count]) x = one;
      p = repeated[count++], moves = 0;
    };
    chain_link<T>& l = links[k];
    l.op = of.op, l.keep = of.keep;
    operand(0, l.a_kept, l.a, l.a_moves), operand(1, l.b_kept, l.b, l.b_moves);
    l.out_moves = of.out < 0 ? 0 : ~std::size_t{0};
    l.out = of.out == no_place ? nullptr
            : of.out < 0       ? near_values[~of.out]
                               : reinterpret_cast<T*>(const_cast<std::byte*>(at[of.out]));
    l.code = chain_code(l.op, l.a_kept), l.leaves = l.out || l.keep;
  }
  detail::run_links(links, links + s->count, n, std::make_index_sequence<chain_width>{});
}
} // namespace detail

/// Returns the kernel of chains for a floating dtype.
template <class = void>
kernel::loop chain_loop(dtype t) {
  return t == dtype::float32 ? &detail::run_chain<float> : &detail::run_chain<double>;
}

} // namespace varve::fusion
