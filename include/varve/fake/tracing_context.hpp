// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/fake/convert.hpp>
#include <varve/shape/environment.hpp>

#include <memory>

namespace varve {

/// What a tracer of one program knows of its inputs (`TracingContext`): the environment of their sizes, the fakes that
/// it runs the program on, and how each was made, so that a backend gets inputs as they were at the start (DT-12 to
/// DT-14). The program may assign to them (`set_data`), write into them and take their shapes apart; the tracer's fakes
/// are then as at its end.
class tracing_context {
public:
  template <class On = void> // as a fake mode
  explicit tracing_context(dependent<shape_environment, On>& e) : mode_(fake_mode_options{&e}) {}

  /// The mode that the tracer runs the program under.
  fake_mode& mode() { return mode_; }
  shape_environment& environment() const { return *mode_.environment(); }
  /// The next input as the tracer sees it: the same fake for the same tensor. Sizes become symbols by the policy,
  /// `duck` where it is empty; the policy counts when a tensor is met first. Views of other tensors are refused
  /// (`value_error`): their sizes are not all.
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

  /// A mode of its own over the same environment, and the inputs under it, in their order.
  struct fresh {
    fake_mode mode;
    std::vector<tensor> inputs{};
    explicit fresh(fake_mode_options const& o) : mode(o) {}
  };
  /// A fresh mode for a backend: its inputs have the symbols that the tracer's have, and the sizes of the start
  /// (DT-13).
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
