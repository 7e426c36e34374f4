/** For the test that holds the pages and the schema together. */
export function renderSections(schema: object): Record<string, string>
export function replaceSections(page: string, sections: Record<string, string>): string
