/** The version of this package; test/exports.test.ts keeps it equal to package.json. */
export const VERSION = '0.1.0'
