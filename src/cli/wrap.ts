import { widthOf } from './table.ts'

/** Breaks a text at spaces into lines of at most `width`; a longer word gets a line of its own. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`
    if (line === '' || widthOf(longer) <= Math.max(width, 20)) line = longer
    else {
      lines.push(line)
      line = word
    }
  }
  return [...lines, line]
}
