"""The best of five products, and how far from the best it may be, without telling who bought what."""

from discreet.mechanisms import PermuteAndFlip

sales = {"tea": 120, "coffee": 310, "cocoa": 305, "juice": 40, "water": 7}
mechanism = PermuteAndFlip(epsilon=0.5, sensitivity=1, monotone=True, candidates=len(sales))
print(f"{mechanism.cost}: with probability 0.95 at most {mechanism.error(0.95):.1f} below the best")
print("chosen:", list(sales)[mechanism.release(list(sales.values()))])
