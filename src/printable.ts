/**
 * Spells out characters that a terminal obeys or that make a text look like another one: control characters (C0, DEL and
 * C1), marks that turn the direction of text, invisible ones, and lone surrogates. Names and payloads come from anywhere.
 *
 * The result is ASCII escapes as JSON has them, so JSON text keeps its meaning, and a second call changes nothing.
 */

/** For one line. */
export function printable(text: string): string {
  return text.replace(UNSAFE, spellOut)
}

/** For a text of several lines: line feeds and tabs stay. */
export function printableLines(text: string): string {
  return text.replace(UNSAFE, (character) =>
    character === '\n' || character === '\t' ? character : spellOut(character),
  )
}

/** Joiners stay: emoji are joined by one, words of Persian and several scripts of India need the other. */
const UNSAFE = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Surrogate}\u2028\u2029]/gu

/** A character beyond the first plane takes two escapes, as in JSON. */
function spellOut(character: string): string {
  return Array.from({ length: character.length }, (_, at) => {
    return `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`
  }).join('')
}
