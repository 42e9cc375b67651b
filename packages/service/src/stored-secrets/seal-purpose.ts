/** Purposes of sealed values. A sealed value that is copied to another row cannot be opened there. */
export const purposeOfSecret = (id: string): string => `secret ${id}`;
export const purposeOfRunSecret = (id: string): string => `secret of a run ${id}`;
