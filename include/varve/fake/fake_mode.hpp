// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/tree.hpp>
#include <varve/fake/dispatch_cache.hpp>
#include <varve/fake/fake_tensor.hpp>

#include <unordered_map>

namespace varve {

class shape_environment;

/// The treatment of a size of a tensor under a fake mode with a shape environment: `duck`, a symbol that equal sizes
/// share; `dynamic`, a symbol of its own; `fixed`, the number; `size_like_unbacked`, a symbol whose value depends on
/// data.
enum class dim_dynamic { duck, dynamic, fixed, size_like_unbacked };

/// An observer that follows a program on fake tensors with the values of one run (`fake_memory::met`). These values
/// decide what depends on data (`draft_export`).
struct value_follower {
  /// Called after a fake was made from a tensor or from another fake.
  virtual void made(tensor const& of, tensor const& fake) = 0;
  /// Called after an operator returned `y` or wrote into it.
  virtual void ran(boxed_op const& op, boxed_args const& x, tensor const& y) = 0;
  /// Returns metadata for the result of an operator that has no shape rule.
  virtual tensor metadata(boxed_op const& op, boxed_args const& x, error const& refused) = 0;
  /// Returns the number in a fake tensor; undefined if it is not known.
  virtual tensor asked(tensor const& fake) = 0;
  /// Called when a symbol was made for the number in a fake tensor.
  virtual void named(tensor const& fake, extent symbol) = 0;

protected:
  ~value_follower() = default;
};

/// Options of a `fake_mode`.
struct fake_mode_options {
  /// The environment in which sizes of converted tensors become symbols. If null, they stay numbers. It must outlive
  /// the tensors.
  shape_environment* environment = nullptr;
  /// True to convert real operands instead of refusing them.
  bool allow_non_fake_inputs = false;
  /// True to run an operator without a shape rule on zeros instead of refusing it.
  bool allow_fallback_kernels = false;
  /// The object that follows what the program computes; may be null.
  value_follower* follower = nullptr;
};

namespace detail {
/// The state of one mode; its tensors keep it alive.
struct fake_state {
  fake_mode_options options;
  std::size_t live = 0, peak = 0; // bytes
  dispatch_cache cache;
  tensor (*zeros_like)(tensor const&) = nullptr; // makes a real tensor
  tensor (*convert)(fake_mode&, tensor const&) = nullptr;
  /// A real tensor and its fake. The real one is kept, because addresses of tensors are reused.
  struct remembered {
    tensor real, fake;
  };
  /// A fake tensor on the memory that stands for a real one, and the number of entries of `memo` on that memory.
  struct remembered_memory {
    tensor fake;
    int users = 0;
  };
  std::unordered_map<tensor_block const*, remembered> memo;
  std::unordered_map<storage const*, remembered_memory> memories;
  std::size_t sweep_at = 32;
  /// Numbers in fake tensors that were requested as symbols.
  struct asked_item {
    tensor of;
    std::uint32_t version;
    extent number;
  };
  std::vector<asked_item> items;
  /// Releases the remembered tensors, which in turn own this state.
  void forget() { memo.clear(), memories.clear(), items.clear(); }
  int inputs = 0;          // number of inputs whose sizes became symbols
  std::size_t made = 0;    // number of memories made so far
  std::size_t certain = 0; // number of memories older than code that may run zero or several times
};
} // namespace detail

namespace detail {
template <class Mode>
void register_fake_rules(); // hop_rules.hpp
template <class T>
T zeros_like_of(T const& t); // run.hpp
/// Returns the backends of a tensor: the bits of its keys without a functionality.
inline unsigned backend_of(tensor const& t) { return t.keys().bits & 0xFu; }
inline constexpr unsigned cpu_backend = default_keys.bits & 0xFu;

/// A scope in which tensors that a mode itself makes from C++ values are not made fake.
class literals_as_they_are {
public:
  literals_as_they_are() : before_(lifts_literals) { lifts_literals = nullptr; }
  literals_as_they_are(literals_as_they_are const&) = delete;
  literals_as_they_are& operator=(literals_as_they_are const&) = delete;
  ~literals_as_they_are() { lifts_literals = before_; }

private:
  literal_lifter* before_;
};
} // namespace detail

/// The mode under which operators compute only metadata (`FakeTensorMode`). Shapes, dtypes, layouts, aliasing, version
/// counters and gradients are those of the program. No element is read or written, and no memory is allocated. Shapes
/// come from the rules that all operators have.
///
///     fake_mode mode;
///     tensor w = mode.from_tensor(real_weights);
///     tensor y = with_fake(mode, [&](tensor const& x) { return matmul(x, w); }, real_inputs);
///     y.sizes(); y.dtype(); mode.peak_bytes();
///
/// Operands are fake tensors of this mode and plain numbers. Throws `dispatch_error` for real operands, unless the
/// options allow them; for operands of two modes; and for operands on different backends, except CPU tensors of rank 0.
/// Throws `data_dependent_error` if an element is read as a number or truth value, unless it is a constant. A constant
/// is a tensor of one element made from C++ values, until something other than a constant is written into it. Only one
/// thread at a time may use a mode.
class fake_mode {
public:
  template <class On = void> // units that make no mode do not instantiate this
  explicit fake_mode(fake_mode_options const& o = {}) : state_(std::make_shared<detail::fake_state>()) {
    state_->options = o;
    state_->zeros_like = &detail::zeros_like_of<dependent<tensor, On>>;
    state_->convert = [](fake_mode& mode, tensor const& t) {
      return mode.from_tensor(static_cast<dependent<tensor, On> const&>(t));
    };
    detail::register_fake_rules<dependent<fake_mode, On>>();
  }
  fake_mode(fake_mode const&) = delete;
  fake_mode& operator=(fake_mode const&) = delete;
  /// Destroys the mode. Its tensors stay valid, but their relation to real tensors is lost.
  ~fake_mode() {
    if (owner_) state_->forget(), state_->options.follower = nullptr;
  }

  /// Returns the fake of a tensor, the same one each time. Tensors that share memory have fakes that share memory. The
  /// fake of a view is a view of the fake of its base; the fake of a leaf is a leaf with its gradient. A fake of this
  /// mode is returned unchanged.
  template <class T = tensor>
  tensor from_tensor(T const& t) {
    return from_tensor(t, {});
  }
  /// Returns the fake of a tensor, with a policy for each of its sizes; if `policy` is empty, all are `duck`. Strides
  /// of dense tensors are computed from the sizes. Views share the memory of the fake of their base and have sizes of
  /// their own.
  template <class T = tensor>
  tensor from_tensor(T const& t, std::vector<dim_dynamic> const& policy);
  /// Returns the fake of a tensor with the given sizes. The tensor must be no view and have no fake yet.
  template <class T = tensor>
  tensor from_tensor_of_sizes(T const& t, dims const& sizes);
  /// Returns the number in a fake tensor of integers as a symbol that depends on data, the same one until the tensor is
  /// written. A constant yields its number. Throws `data_dependent_error` without a shape environment.
  extent item(tensor const& t);
  /// Returns the symbol of the number in a fake tensor, valid until the next one is requested. Null for constants, and
  /// for tensors that cannot have one.
  extent const* symbol_in(tensor const& t);
  /// Returns the environment of its symbols; may be null.
  shape_environment* environment() const { return state_->options.environment; }
  value_follower* follower() const { return state_->options.follower; }
  /// Returns the number of tensors whose fake is remembered: those that are still in use elsewhere.
  std::size_t remembered();

  /// Return the bytes that the tensors of the mode would occupy now (`live_bytes`) and at most (`peak_bytes`). This
  /// estimates the memory of a program without running it.
  std::size_t live_bytes() {
    sweep();
    return state_->live;
  }
  std::size_t peak_bytes() const { return state_->peak; }

  /// Returns how often metadata of results was found in the cache.
  dispatch_cache_info const& cache_info() const { return state_->cache.info; }

  /// True for a fake tensor of this mode.
  bool owns(tensor const& t) const { return is_fake(t) && detail::fake_memory::of_tensor(t).of == state_; }

  tensor process(boxed_op const& op, boxed_args const& x);
  /// Returns a fresh tensor of the mode like another one, with other sizes.
  tensor like(tensor const& t, dims const& sizes) {
    return made(tensor::meta(sizes, t.dtype()), is_fake(t) ? detail::backend_of(t) : detail::cpu_backend);
  }

  /// A scope in which writes into older memory make no constants, since data decide whether they happen.
  class uncertain {
  public:
    uncertain(fake_mode& m, bool on) : of_(*m.state_), before_(of_.certain) {
      if (on) of_.certain = of_.made;
    }
    uncertain(uncertain const&) = delete;
    uncertain& operator=(uncertain const&) = delete;
    ~uncertain() { of_.certain = before_; }

  private:
    detail::fake_state& of_;
    std::size_t before_;
  };
  /// Makes the number in a fake tensor unknown, and returns the tensor.
  tensor const& forgotten(tensor const& t) {
    detail::fake_memory::of_tensor(t).value = tensor();
    return t;
  }

private:
  friend tensor detail::run_on_fakes(boxed_op const& op, boxed_args const& x);
  friend struct detail::fake_memory;
  friend class fake_mode_guard;
  explicit fake_mode(std::shared_ptr<detail::fake_state> s) : state_(std::move(s)), owner_(false) {}
  tensor operand(char const* op, int k, tensor const& t);
  tensor made(tensor const& meta, unsigned backend, tensor const& value = {});
  index_t count_of(dims const& sizes) const;
  tensor metadata(boxed_op const& op, boxed_args const& x);
  tensor worked_out(boxed_op const& op, boxed_args const& x);
  void written(boxed_op const& op, tensor const& into, bool constant, boxed_args const& values);
  template <class T>
  tensor converted(T const& t, std::vector<dim_dynamic> const& policy);
  dims symbolic(dims const& sizes, std::vector<dim_dynamic> const& policy);
  template <class T>
  void mirror_gradient(T const& real, T const& fake);
  void sweep();
  std::shared_ptr<detail::fake_state> state_;
  bool owner_ = true;
};

/// A guard that switches a fake mode on for this thread until the end of the scope. It uses the infra slot of fake
/// modes, so another fake mode is off meanwhile. Tensors made from C++ values in the scope are fake, unless `lifts` is
/// false.
class fake_mode_guard : detail::literal_lifter {
public:
  explicit fake_mode_guard(fake_mode& mode, bool lifts = true)
      : mode_(mode), around_(this_thread_state.infra[static_cast<int>(infra_mode::fake)]), on_(infra_mode::fake, mode_),
        lifts_(detail::lifts_literals) {
    detail::lifts_literals = lifts ? this : nullptr;
  }
  fake_mode_guard(fake_mode_guard const&) = delete;
  fake_mode_guard& operator=(fake_mode_guard const&) = delete;
  ~fake_mode_guard() { detail::lifts_literals = lifts_; }

private:
  inline tensor lifted(tensor const& t) override; // as in fake_memory
  fake_mode& mode_;
  emptied around_;
  infra_mode_guard<fake_mode> on_;
  literal_lifter* lifts_;
};

/// Runs f under the mode on the fakes of x, which may be trees: `with_fake(mode, f, x...)`. The results are fake. No
/// element of x is accessed.
template <class F, class... X>
auto with_fake(fake_mode& mode, F const& f, X const&... x) {
  auto const convert = [&](auto const& v) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) return mode.from_tensor(v);
    else return v;
  };
  std::tuple const in{tree_map(convert, x)...}; // braces: evaluated in order
  fake_mode_guard const on(mode);
  return detail::call_with(f, in);
}

} // namespace varve

#include <varve/fake/convert.hpp>
#include <varve/fake/hop_rules.hpp>
#include <varve/fake/run.hpp> // the members
