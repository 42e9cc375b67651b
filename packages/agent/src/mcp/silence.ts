/** The first words of the error about a server that did not answer in time. */
export const silence = 'it did not list its tools within';
