import { describe, expect, it } from 'vitest'
import { createProgress, describeBar } from '../../src/cli/progress.ts'

function record({ isTTY = false, quiet = false }) {
  let written = ''
  let time = 0
  const write = (text: string) => {
    written += text
  }
  const progress = createProgress({ stream: { isTTY, write }, quiet, now: () => time })
  return {
    progress,
    pass: (ms: number) => {
      time += ms
    },
    written: () => written,
  }
}

describe('progress', () => {
  it('is one line in a terminal, written over and taken away', () => {
    const { progress, written } = record({ isTTY: true })
    progress.at(50n, 200n)
    progress.at(200n, 200n)
    progress.end()
    expect(written().split('\r\u001b[2K')).toEqual(['', ' 25 %  position 50 of 200', '100 %  position 200 of 200', ''])
  })

  it('is a line every five seconds elsewhere', () => {
    const { progress, pass, written } = record({})
    for (let done = 1n; done <= 11n; done++) {
      pass(1_000)
      progress.at(done, 11n)
    }
    progress.end()
    expect(written()).toBe(' 45 %  position 5 of 11\n 90 %  position 10 of 11\n')
  })

  it('is nothing when only data was asked for, and has no trouble with an empty log', () => {
    const silent = record({ isTTY: true, quiet: true })
    silent.progress.at(1n, 2n)
    silent.progress.end()
    expect(silent.written()).toBe('')
    const empty = record({ isTTY: true })
    empty.progress.at(0n, 0n)
    expect(empty.written()).toContain('100 %')
  })

  it('is a bar where positions mean nothing to the reader', () => {
    expect(describeBar(0n, 8n)).toBe(`${'·'.repeat(30)}   0 %`)
    expect(describeBar(4n, 8n)).toBe(`${'▇'.repeat(15)}${'·'.repeat(15)}  50 %`)
    expect(describeBar(0n, 0n)).toBe(`${'▇'.repeat(30)} 100 %`)
  })
})
