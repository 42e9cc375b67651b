/** Purposes of encrypted values. An encrypted value that is copied to another row cannot be decrypted there. */
export const purposeOfSecret = (id: string): string => `secret ${id}`;
export const purposeOfRunSecret = (id: string): string => `secret of a run ${id}`;
