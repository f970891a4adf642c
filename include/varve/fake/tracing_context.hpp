// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/fake/convert.hpp>
#include <varve/shape/environment.hpp>

#include <memory>

namespace varve {

/// The data that a tracer of one program stores about its inputs (`TracingContext`): the environment of their sizes,
/// the fakes that the program runs on, and how each was made. A backend can thus get inputs as they were at the start.
/// The program may assign to its inputs (`set_data`), write into them and inspect their shapes. The tracer's fakes are
/// then in the state at the end of the program.
class tracing_context {
public:
  template <class On = void> // a template like the constructor of `fake_mode`
  explicit tracing_context(dependent<shape_environment, On>& e) : mode_(fake_mode_options{&e}) {}

  /// Returns the mode under which the tracer runs the program.
  fake_mode& mode() { return mode_; }
  shape_environment& environment() const { return *mode_.environment(); }
  /// Returns the fake of the next input; the same tensor has the same fake. Sizes become symbols by the policy, or
  /// `duck` if it is empty. The policy of the first call for a tensor applies. Views of other tensors are refused
  /// (`value_error`), because their sizes do not describe the whole memory.
  template <class T = tensor>
  tensor input(T const& t, std::vector<dim_dynamic> const& policy = {}) {
    for (auto const& known : inputs_)
      if (known.real.is(t)) return known.fake;
    if (t.base().defined())
      refuse::argument_is_invalid("tracing_context", "an input is a view of another tensor; give that, or a clone");
    tensor const fake = mode_.from_tensor(t, policy);
    inputs_.push_back({t, fake, fake.sizes()});
    return fake;
  }
  std::size_t inputs() const { return inputs_.size(); }

  /// A separate mode over the same environment, and the inputs under it, in their order.
  struct fresh {
    fake_mode mode;
    std::vector<tensor> inputs{};
    template <class On = void> // as above
    explicit fresh(dependent<fake_mode_options, On> const& o) : mode(o) {}
  };
  /// Returns a fresh mode for a backend. Its inputs have the symbols of the tracer's inputs and the sizes of the start.
  template <class T = tensor>
  std::unique_ptr<fresh> fresh_fake_mode() const {
    auto r = std::make_unique<fresh>(fake_mode_options{mode_.environment()});
    for (auto const& i : inputs_)
      r->inputs.push_back(r->mode.from_tensor_of_sizes(static_cast<T const&>(i.real), i.sizes));
    return r;
  }

private:
  struct known_input {
    tensor real, fake;
    dims sizes; // at the start
  };
  fake_mode mode_;
  std::vector<known_input> inputs_{};
};

} // namespace varve
