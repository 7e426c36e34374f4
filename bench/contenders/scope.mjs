/** What a journey opened, to be closed in reverse order, also when the journey fails. */
export function createScope() {
  const opened = []
  return {
    /** Waits for what is opened, and closes it at the end. */
    async own(opening) {
      const one = await opening
      opened.push(one)
      return one
    },
    async close() {
      for (const one of opened.splice(0).reverse()) await one.close()
    },
  }
}
