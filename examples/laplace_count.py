"""How many people were there? A count, private and exact to the last bit of its noise."""

from discreet.mechanisms import Laplace

count = Laplace(epsilon=0.5, sensitivity=1)  # one person more or fewer changes a count by 1
released = count.release(1234)

print(f"about {released:.0f} people, within {count.error(0.95):.1f} with probability 95 %")
print(f"cost: {count.cost}, epsilon = {count.cost.epsilon(delta=0):.3g}")
print(f"ten such releases: epsilon = {(10 * count.cost).epsilon(delta=1e-6):.3g} at delta = 1e-6")
