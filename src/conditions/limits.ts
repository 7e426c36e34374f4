/** What a value may grow to while it is worked on, and how long a list a comprehension goes through. */
export const LONGEST_LIST = 10_000
export const LONGEST_TEXT = 1_000_000
