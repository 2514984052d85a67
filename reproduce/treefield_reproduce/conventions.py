"""The choices that the paper leaves open, and the conventions used here."""

CONVENTIONS = [
    "An iteration of T-ICM is one sweep over every tree of the set; trees are rows, top to bottom, then columns, "
    "left to right, and every second sweep goes the other way round. Among labels of equal cost the lowest wins.",
    "Ising: the text draws all parameters from U(-1, 1) and speaks of λ as the strength of the couplings, so they "
    "are drawn from U(-λ, λ).",
    "Loopy BP as the paper describes it sends all messages at once, undamped, and takes each site's label by Eq. "
    "6. Its stereo figures come from the C++ framework of Szeliski et al., whose messages go in turn. Both are "
    "shown, and a stronger variant (damped, labels one after the other). Of all labellings that the iterations "
    "led to, the best counts.",
    "Scan-line is exact search on each row, as if the rows did not touch, with unary costs multiplied by nu; its "
    "energy is that of the whole grid.",
    "Stereo: intensity is 0.299 R + 0.587 G + 0.114 B, rounded; where a match would leave the image, the first "
    "column is taken. The paper says nothing of either; a separate table shows what other rules give.",
    "Penguin is 122 wide and 179 high, with 256 labels; its energy uses no mask for the hole. The search starts "
    "from a random labelling, as the paper does unless it says otherwise.",
    "Acceptance: r = 0.9 n/t + 0.1 [accepted] after t jumps of which n were accepted; beta is multiplied by 0.8 "
    "below 0.45 and divided by 0.8 above 0.55. The text says that beta = 0 is greedy and a large beta accepts all "
    "jumps; by its own formula it is the other way round. The formula is followed.",
    "The energy of T-ILS is that of the best labelling it met, not of the last.",
    "Times are of the searches alone, compilation and imports left out, on the machine that made this page.",
]
