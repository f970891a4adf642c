// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/fake/fake_mode.hpp>
#include <varve/op/create.hpp>
#include <varve/op/in_place.hpp>
#include <varve/op/item.hpp>
#include <varve/shape/environment.hpp>

/// @file
/// How a fake mode runs operators: it computes metadata by the shape rule of the operator. The result has the backend
/// of the operands, and either a memory of its own or that of an operand.
namespace varve {

namespace detail {
inline fake_memory::fake_memory(std::shared_ptr<fake_state> s, std::size_t n, tensor v)
    : of(std::move(s)), bytes(n), value(std::move(v)) {
  number = ++of->made;
  of->live += bytes;
  if (of->live > of->peak) of->peak = of->live;
}
inline fake_memory::~fake_memory() { of->live -= bytes; }
inline subclass_type const& fake_memory::type() const { return fake_tensor_type; }
inline tensor fake_memory::constant(tensor const& t) const {
  if (tensor const v = constant_of(t); v.defined()) return v;
  if (value_follower* const f = of->options.follower)
    if (tensor const v = f->asked(t); v.defined()) return v;
  refuse::with<data_dependent_error>(
      "varve: item: the number in a fake tensor is not known: the program depends on data; use "
      "where or cond, or pass it as a plain number");
}
inline extent const* fake_memory::symbol_of(tensor const& t) const { return fake_mode(of).symbol_in(t); }
inline tensor fake_memory::in_its_mode(tensor (*make)(void const*), void const* f) const {
  fake_mode mode(of);
  fake_mode_guard const on(mode);
  return make(f);
}
inline tensor fake_memory::rebuilt(tensor const*) const {
  refuse::with<dispatch_error>("varve: a fake tensor has no tensors inside of which it could be made anew");
}

inline char const* name_of_backend(unsigned bits) { return name(static_cast<dispatch_key>(std::bit_width(bits))); }
/// Returns the backend of a result: that of all operands. CPU tensors of rank 0 may be combined with any other backend.
/// `copy_` writes from any backend and keeps that of its target.
inline unsigned common_backend(boxed_op const& op, boxed_args const& x) {
  bool const copies = op.table->handle && op.table->handle() == &handle<copy__t>;
  if (op.table->kind == op_kind::mutation && copies) return backend_of(x[0]);
  unsigned common = 0;
  bool any = false;
  for (auto const& t : x) {
    if (!is_fake(t)) continue;
    any = true;
    unsigned const own = backend_of(t);
    if (t.dim() == 0 && own == cpu_backend) continue;
    if (common && common != own)
      refuse::with<dispatch_error>((std::string("varve: ") + op.name() + ": operands are on different backends: " +
                                    name_of_backend(common) + " and " + name_of_backend(own) + "; move them to one")
                                       .c_str());
    common = own;
  }
  unsigned const asked = this_thread_state.included.bits & 0xFu; // set by the scope around the factory
  return common ? common : any || !asked ? cpu_backend : asked;
}

/// Computes the metadata of a result by the operator's own rule, or by a kernel that a library registered for meta
/// tensors.
inline tensor result_on_meta(boxed_op const& op, boxed_args const& x) {
  bool const registered = op.table->registered && op.table->registered->load(std::memory_order_acquire);
  return op.table->meta && !registered ? op.table->meta(*op.at, x) : op(x);
}
template <class T>
T zeros_like_of(T const& t) {
  return varve::zeros(t.sizes(), t.dtype());
}
/// Computes the metadata of a result by running the operator on zeros and discarding the elements.
inline tensor result_on_zeros(boxed_op const& op, boxed_args const& x, tensor (*zeros_like)(tensor const&)) {
  boxed_args zeros;
  for (auto const& t : x) zeros.push_back(t.is_number() ? t : zeros_like(t));
  tensor const y = op(zeros);
  for (auto const& z : zeros)
    if (y.shares_storage(z) || z.writes())
      refuse::with<missing_rule>(
          (std::string("varve: fake_mode: ") + op.name() +
           " has no rule for its shape, and is no function of its operands alone (it returned or wrote "
           "into one); register a kernel for dispatch_key::meta")
              .c_str());
  return y.as_meta();
}

/// Runs a call outside of any mode under the mode of its operands.
inline tensor run_on_fakes(boxed_op const& op, boxed_args const& x) {
  for (auto const& t : x)
    if (is_fake(t)) return fake_mode(fake_memory::of_tensor(t).of).process(op, x);
  return {};
}
} // namespace detail

inline tensor fake_mode::made(tensor const& meta, unsigned backend, tensor const& value) {
  std::size_t const bytes =
      static_cast<std::size_t>(count_of(meta.sizes())) * static_cast<std::size_t>(itemsize(meta.dtype()));
  auto memory = std::make_unique<detail::fake_memory>(state_, bytes, value);
  auto const keys = dispatch_key_set::of_bits((default_keys.bits & ~0xFu) | backend) | dispatch_key::subclass;
  tensor r = tensor::of_object(memory.get(), meta.sizes(), meta.strides(), meta.dtype(), keys);
  (void)memory.release();
  return r;
}
/// Returns the number of elements according to hints. Sizes that depend on data count as 0.
inline index_t fake_mode::count_of(dims const& sizes) const {
  index_t n = 1;
  for (extent const s : sizes)
    n *= s.is_number() ? s.number() : environment() && !environment()->depends_on_data(s) ? environment()->hint(s) : 0;
  return n;
}
inline tensor fake_mode::operand(char const* op, int k, tensor const& t) {
  if (!t.defined() || t.is_number() || owns(t)) return t;
  if (is_fake(t))
    refuse::with<dispatch_error>((std::string("varve: ") + op + ": operand " + std::to_string(k) +
                                  " is a fake tensor of another fake_mode; convert all operands by one mode")
                                     .c_str());
  if (state_->options.allow_non_fake_inputs) return state_->convert(*this, t);
  refuse::with<dispatch_error>((std::string("varve: ") + op + ": operand " + std::to_string(k) + " is a real tensor (" +
                                name(t.dtype()) + to_string(t.sizes()) +
                                ") under a fake_mode; convert it by mode.from_tensor(t), or make the mode with "
                                "{.allow_non_fake_inputs = true}")
                                   .c_str());
}

namespace detail {
/// Collects the constants of a call whose result is a constant: all operands are known, and one of them is a fake
/// tensor. Returns false for other calls.
inline bool are_constant(boxed_op const& op, boxed_args const& x, boxed_args& values) {
  bool any = false;
  if (op.table->kind == op_kind::random || op.table->kind == op_kind::effect) return false;
  for (auto const& t : x) {
    tensor const v = is_fake(t) ? constant_of(t) : t;
    if (!v.defined()) return false;
    any = any || is_fake(t);
    values.push_back(v);
  }
  return any;
}
} // namespace detail

namespace detail {
/// True if all operands of an elementwise operator are plain numbers. The result is then a plain number too.
inline bool are_plain_numbers(boxed_op const& op, boxed_args const& x) {
  bool all = op.table->kind == op_kind::pointwise && x.size() > 0;
  for (auto const& t : x) all = all && t.defined() && t.is_number();
  return all;
}
} // namespace detail
inline tensor fake_mode::process(boxed_op const& op, boxed_args const& x) {
  detail::literals_as_they_are const off;
  boxed_args in, metas, values;
  for (int k = 0; k < x.size(); ++k) in.push_back(operand(op.name(), k, x[k]));
  if (detail::are_plain_numbers(op, in)) return op(in);
  unsigned const backend = detail::common_backend(op, in);
  for (auto const& t : in) metas.push_back(is_fake(t) ? t.as_meta() : t);
  bool const constant = detail::are_constant(op, in, values);
  shape_environment::asking const asks(environment(), op.name());
  value_follower* const follower = this->follower();
  auto const without_rule = [&](error const& e) { return follower->metadata(op, in, e); };
  tensor const y =
      !follower
          ? metadata(op, metas)
          : detail::attempt<missing_rule>(
                [&] { return detail::attempt<dispatch_error>([&] { return metadata(op, metas); }, without_rule); },
                without_rule);
  if (!y.defined()) return y;
  for (int k = 0; k < x.size(); ++k) {
    if (!y.is(metas[k])) continue;
    if (op.table->kind == op_kind::mutation) {
      if (!is_fake(in[k]))
        refuse::with<dispatch_error>((std::string("varve: ") + op.name() +
                                      ": a plain number cannot be written into under a "
                                      "fake_mode; write into a tensor of the mode")
                                         .c_str());
      written(op, in[k], constant, values);
      if (follower) follower->ran(op, in, in[k]);
    }
    return x[k];
  }
  for (int k = 0; k < x.size(); ++k)
    if (is_fake(in[k]) && y.shares_storage(metas[k])) return in[k].with_layout(y.where(), y.base().defined());
  bool const known = constant && detail::has_one_element(y.sizes());
  tensor const r = made(y, backend, known ? op(values) : tensor());
  if (follower) follower->ran(op, in, r);
  if (op.table->handle && op.table->handle() == &handle<local_scalar_t> && environment() && !known)
    state_->items.push_back({r, r.version(), (*op.at)[0].n ? (*op.at)[0][0] : item(in[0])}); // the same number
  return r;
}
/// Returns the metadata of a result, from the cache or by `worked_out`. An operator without a shape rule runs on zeros
/// if the mode allows it.
inline tensor fake_mode::metadata(boxed_op const& op, boxed_args const& x) {
  detail::dispatch_cache& cache = state_->cache;
  if (meta const* const known = cache.find(op, x, get_default_dtype())) return tensor::meta(known->sizes, known->type);
  bool const keeps = cache.keeps();
  tensor const y = worked_out(op, x);
  bool fresh = keeps && y.defined() && !y.has_data();
  for (auto const& t : x) fresh = fresh && !y.shares_storage(t);
  if (fresh) cache.keep(meta_of(y));
  return y;
}
inline tensor fake_mode::worked_out(boxed_op const& op, boxed_args const& x) {
  if (!state_->options.allow_fallback_kernels) return detail::result_on_meta(op, x);
  auto const on_zeros = [&](auto const&) { return detail::result_on_zeros(op, x, state_->zeros_like); };
  auto const on_meta = [&] { return detail::result_on_meta(op, x); };
  return detail::attempt<missing_rule>([&] { return detail::attempt<dispatch_error>(on_meta, on_zeros); }, on_zeros);
}
/// Updates a constant after a write. If constants were written into it, it remains one for all its aliases; otherwise
/// its value becomes unknown.
inline void fake_mode::written(boxed_op const& op, tensor const& into, bool constant, boxed_args const& values) {
  detail::fake_memory& memory = detail::fake_memory::of_tensor(into);
  if (constant && memory.number > state_->certain) (void)op(values);
  else memory.value = tensor();
}

inline tensor fake_mode_guard::lifted(tensor const& t) {
  detail::literals_as_they_are const off;
  constexpr index_t few = 4096;
  tensor const r = mode_.made(t.as_meta(), detail::cpu_backend, t.numel() <= few ? t : tensor());
  if (value_follower* const f = mode_.follower()) f->made(t, r);
  return r;
}

inline extent const* fake_mode::symbol_in(tensor const& t) {
  if (constant_of(t).defined() || !environment() || is_floating(t.dtype()) || !detail::has_one_element(t.sizes()))
    return nullptr;
  for (auto const& known : state_->items)
    if (known.of.is(t) && known.version == t.version()) return &known.number;
  state_->items.push_back({t, t.version(), environment()->unbacked(false)});
  if (value_follower* const f = follower()) f->named(t, state_->items.back().number);
  return &state_->items.back().number;
}
inline extent fake_mode::item(tensor const& t) {
  extent const* const symbol = is_fake(t) ? symbol_in(t) : nullptr;
  return symbol ? *symbol : extent(t.template item<index_t>()); // refused if the number is unknown
}
} // namespace varve
