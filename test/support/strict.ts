/**
 * Every process of the suite refuses to make code from text, and so does every one that it starts: whatever passes here
 * needs no `eval`, and no template or condition can get to one.
 */
export const STRICT = ['--disallow-code-generation-from-strings']
