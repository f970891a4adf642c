// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/tree.hpp>
#include <varve/fake/dispatch_cache.hpp>
#include <varve/fake/fake_tensor.hpp>

#include <unordered_map>

namespace varve {

class shape_environment;

/// What a size of a tensor becomes under a fake mode with a shape environment (SY-1, DT-12): a symbol that sizes of the
/// same number share, one of its own, the number, or a size that only data tell.
enum class dim_dynamic { duck, dynamic, fixed, size_like_unbacked };

/// Keeps beside fake tensors what the program computes in one run (`fake_memory::met`), by which it is decided what
/// only data tell: `draft_export`.
struct value_follower {
  /// A fake was made of a tensor, or of another fake.
  virtual void made(tensor const& of, tensor const& fake) = 0;
  /// An operator gave `y`, or wrote into it.
  virtual void ran(boxed_op const& op, boxed_args const& x, tensor const& y) = 0;
  /// Metadata of the result of an operator that has no rule for its shape.
  virtual tensor metadata(boxed_op const& op, boxed_args const& x, error const& refused) = 0;
  /// The number in a fake is asked for; undefined where nobody knows.
  virtual tensor asked(tensor const& fake) = 0;
  /// A symbol stands for it.
  virtual void named(tensor const& fake, extent symbol) = 0;

protected:
  ~value_follower() = default;
};

/// How a `fake_mode` behaves.
struct fake_mode_options {
  /// Where sizes of converted tensors become symbols; null: they stay numbers. It must outlive the tensors.
  shape_environment* environment = nullptr;
  /// Real operands are converted, instead of refused (FK-2).
  bool allow_non_fake_inputs = false;
  /// An operator without a rule for its shape is run on zeros, instead of refused (FK-9).
  bool allow_fallback_kernels = false;
  /// Who follows what the program computes; null: nobody.
  value_follower* follower = nullptr;
};

namespace detail {
/// What one mode knows; its tensors keep it alive.
struct fake_state {
  fake_mode_options options;
  std::size_t live = 0, peak = 0; // bytes
  dispatch_cache cache;
  tensor (*zeros_like)(tensor const&) = nullptr; // a real one
  tensor (*convert)(fake_mode&, tensor const&) = nullptr;
  /// A real tensor, kept while its fake is remembered, since addresses of tensors are used again.
  struct remembered {
    tensor real, fake;
  };
  /// A fake tensor on the memory that stands for a real one, and how many of the memo lie in it.
  struct remembered_memory {
    tensor fake;
    int users = 0;
  };
  std::unordered_map<tensor_block const*, remembered> memo;
  std::unordered_map<storage const*, remembered_memory> memories;
  std::size_t sweep_at = 32;
  /// Numbers in fake tensors that were asked for (FK-8).
  struct asked_item {
    tensor of;
    std::uint32_t version;
    extent number;
  };
  std::vector<asked_item> items;
  /// What it remembers holds tensors, which hold it.
  void forget() { memo.clear(), memories.clear(), items.clear(); }
  int inputs = 0;          // whose sizes became symbols
  std::size_t made = 0;    // memories, ever
  std::size_t certain = 0; // of which those are older than what may not run at all, or several times
};
} // namespace detail

namespace detail {
template <class Mode>
void register_fake_rules(); // hop_rules.hpp
template <class T>
T zeros_like_of(T const& t); // run.hpp
/// The backends of a tensor, as bits of its keys without a functionality.
inline unsigned backend_of(tensor const& t) { return t.keys().bits & 0xFu; }
inline constexpr unsigned cpu_backend = default_keys.bits & 0xFu;

/// Nothing is lifted in what a mode itself makes.
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

/// The mode under which operators compute metadata only (`FakeTensorMode`): shapes, dtypes, layouts, aliasing, version
/// counters and gradients are those of the program, no element is read or written, no memory is taken. Shapes come from
/// the rules that all operators have.
///
///     fake_mode mode;
///     tensor w = mode.from_tensor(real_weights);
///     tensor y = with_fake(mode, [&](tensor const& x) { return matmul(x, w); }, real_inputs);
///     y.sizes(); y.dtype(); mode.peak_bytes();
///
/// Operands are fake tensors of this mode and plain numbers. Errors (`dispatch_error`): real operands, unless the
/// options allow them; operands of two modes; operands on different backends, but for CPU tensors of rank 0 (FK-6).
/// `data_dependent_error`: numbers and truth values of elements, unless they are constants: tensors of one element made
/// of C++ values, until somebody writes into them what is no constant (FK-5). A mode is used by one thread at a time.
/// (FK-1 to FK-12)
class fake_mode {
public:
  template <class On = void> // what a unit does not make, it does not pay for
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
  /// Its tensors live on, and forget of which real ones they are the fakes.
  ~fake_mode() {
    if (owner_) state_->forget(), state_->options.follower = nullptr;
  }

  /// The fake of a tensor: the same one each time. Tensors on one memory give fakes on one; a view gives a view of the
  /// fake of its base; a leaf a leaf, with its gradient. A fake of this mode is its own (FK-3, FK-4).
  template <class T = tensor>
  tensor from_tensor(T const& t) {
    return from_tensor(t, {});
  }
  /// ... with a policy for each of its sizes; without, all are `duck`. Strides of dense tensors follow from the sizes
  /// (SY-9). Views share the memory of the fake of their base, and have sizes of their own.
  template <class T = tensor>
  tensor from_tensor(T const& t, std::vector<dim_dynamic> const& policy);
  /// ... of given sizes: of a tensor that is no view, and that no fake is of yet.
  template <class T = tensor>
  tensor from_tensor_of_sizes(T const& t, dims const& sizes);
  /// A number in a fake tensor of integers, as a symbol that only data tell (FK-7): the same one until somebody writes
  /// into the tensor (FK-8). `data_dependent_error` without a shape environment; a constant is its number.
  extent item(tensor const& t);
  /// ... its symbol, until the next is asked for; null for constants, and where there are none.
  extent const* symbol_in(tensor const& t);
  /// Where its sizes are symbols of; null without.
  shape_environment* environment() const { return state_->options.environment; }
  value_follower* follower() const { return state_->options.follower; }
  /// For how many tensors a fake is remembered: those that somebody else still holds.
  std::size_t remembered();

  /// Bytes that tensors of the mode would hold now, and held at most: what a program takes, without running it.
  std::size_t live_bytes() {
    sweep();
    return state_->live;
  }
  std::size_t peak_bytes() const { return state_->peak; }

  /// How often metadata of results were known already (FK-10).
  dispatch_cache_info const& cache_info() const { return state_->cache.info; }

  /// Is it a fake tensor of this mode?
  bool owns(tensor const& t) const { return is_fake(t) && detail::fake_memory::of_tensor(t).of == state_; }

  tensor process(boxed_op const& op, boxed_args const& x);
  /// A fresh tensor of the mode like another one, of other sizes.
  tensor like(tensor const& t, dims const& sizes) {
    return made(tensor::meta(sizes, t.dtype()), is_fake(t) ? detail::backend_of(t) : detail::cpu_backend);
  }

  /// While it lives, writes into memory that was there before make no constants: data decide whether they happen.
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
  /// A fake tensor whose number is not known (any more).
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

/// Switches a fake mode on for this thread until the end of the scope, in the infra slot of fake modes. One that is
/// there already is off meanwhile (FK-11). Tensors that the scope makes of C++ values are fake, unless told otherwise.
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
  tensor lifted(tensor const& t) override;
  fake_mode& mode_;
  emptied around_;
  infra_mode_guard<fake_mode> on_;
  literal_lifter* lifts_;
};

/// `with_fake(mode, f, x...)`: f under the mode, on the fakes of x, which may be trees; the results are fake. Never
/// touches data of x.
template <class F, class... X>
auto with_fake(fake_mode& mode, F const& f, X const&... x) {
  auto const convert = [&](auto const& v) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, tensor>) return mode.from_tensor(v);
    else return v;
  };
  std::tuple const in{tree_map(convert, x)...}; // braces: in order
  fake_mode_guard const on(mode);
  return detail::call_with(f, in);
}

} // namespace varve

#include <varve/fake/convert.hpp>
#include <varve/fake/hop_rules.hpp>
#include <varve/fake/run.hpp> // the members
