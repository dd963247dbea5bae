// Made by bindgen from include/norm.h: `NORM_BLESS=1 cargo test -p norm-sys`.

pub const NORM_ARG_RESIDUAL: i32 = 1073741825;
pub const NORM_ARG_RESIDUAL_DST: i32 = 1073741826;
pub const NORM_ARG_DIFF_RESIDUAL_DST: i32 = 1073741827;
pub const NORM_ARG_GATE: i32 = 1073741828;
pub const NORM_ARG_DIFF_GATE: i32 = 1073741829;
pub const NORM_MAX_NDIMS: i32 = 12;
pub const NORM_ARG_SRC: i32 = 1;
pub const NORM_ARG_SRC_0: i32 = 1;
pub const NORM_ARG_FROM: i32 = 1;
pub const NORM_ARG_SRC_1: i32 = 2;
pub const NORM_ARG_SRC_2: i32 = 3;
pub const NORM_ARG_DST: i32 = 17;
pub const NORM_ARG_DST_0: i32 = 17;
pub const NORM_ARG_TO: i32 = 17;
pub const NORM_ARG_WEIGHTS: i32 = 33;
pub const NORM_ARG_MEAN: i32 = 49;
pub const NORM_ARG_VARIANCE: i32 = 50;
pub const NORM_ARG_SCALE: i32 = 51;
pub const NORM_ARG_SHIFT: i32 = 52;
pub const NORM_ARG_WORKSPACE: i32 = 64;
pub const NORM_ARG_SCRATCHPAD: i32 = 80;
pub const NORM_ARG_DIFF_SRC: i32 = 129;
pub const NORM_ARG_DIFF_SRC_1: i32 = 130;
pub const NORM_ARG_DIFF_DST: i32 = 145;
pub const NORM_ARG_DIFF_SCALE: i32 = 255;
pub const NORM_ARG_DIFF_SHIFT: i32 = 256;
pub const NORM_ARG_ATTR_SCALES: i32 = 4096;
pub const NORM_ARG_ATTR_ZERO_POINTS: i32 = 8192;
pub const NORM_ARG_ATTR_MULTIPLE_POST_OP_BASE: i32 = 32768;
pub const NORM_REMEDIES: i32 = 6;
pub const NORM_VERSION_MAJOR: i32 = 0;
pub const NORM_VERSION_MINOR: i32 = 1;
pub const NORM_VERSION_PATCH: i32 = 0;
pub const NORM_ARG_SOFTMAX_STATS: i32 = 1073741830;
pub const NORM_ARG_ATTR_DROPOUT_OFFSET: i32 = 507;
pub const NORM_ARG_ATTR_DROPOUT_MASK: i32 = 509;
pub const NORM_ARG_ATTR_DROPOUT_PROBABILITY: i32 = 510;
pub const NORM_ARG_ATTR_DROPOUT_SEED: i32 = 511;
pub const NORM_ARG_POSITIONS: i32 = 1073741840;
pub const NORM_ARG_ROPE_FREQUENCIES: i32 = 1073741841;
pub const NORM_ARG_ROPE_COS: i32 = 1073741842;
pub const NORM_ARG_ROPE_SIN: i32 = 1073741843;
pub const NORM_ARG_SLOTS: i32 = 1073741844;
pub const NORM_ARG_SINKS: i32 = 1073741856;
pub const NORM_ARG_DIFF_SINKS: i32 = 1073741857;
pub const NORM_ARG_ALIBI_SLOPES: i32 = 1073741858;
pub const NORM_ARG_QUERY_LENGTHS: i32 = 1073741859;
pub const NORM_ARG_KEY_LENGTHS: i32 = 1073741860;
pub const NORM_ARG_PAGE_TABLE: i32 = 1073741861;
pub const NORM_ARG_ENTROPY: i32 = 1073741862;
pub const NORM_ARG_QUERY_OFFSETS: i32 = 1073741863;
pub const NORM_ARG_KEY_OFFSETS: i32 = 1073741864;
pub const NORM_ARG_QUERIES: i32 = 1;
pub const NORM_ARG_KEYS: i32 = 2;
pub const NORM_ARG_VALUES: i32 = 3;
pub const NORM_ARG_ATTN_MASK: i32 = 52;
pub const NORM_ARG_DIFF_QUERIES: i32 = 129;
pub const NORM_ARG_DIFF_KEYS: i32 = 130;
pub const NORM_ARG_DIFF_VALUES: i32 = 131;
pub const NORM_ARG_DIFF_ATTN_MASK: i32 = 132;
pub const norm_residual_rounded: norm_residual_rounding_t = 16777216;
pub const norm_residual_exact: norm_residual_rounding_t = 16777217;
pub type norm_residual_rounding_t = ::core::ffi::c_uint;
pub const norm_format_tag_undef: norm_format_tag_t = 0;
pub const norm_format_tag_any: norm_format_tag_t = 1;
pub const norm_a: norm_format_tag_t = 2;
pub const norm_ab: norm_format_tag_t = 3;
pub const norm_abc: norm_format_tag_t = 4;
pub const norm_abcd: norm_format_tag_t = 5;
pub const norm_abcde: norm_format_tag_t = 6;
pub const norm_abcdef: norm_format_tag_t = 7;
pub const norm_abcdefg: norm_format_tag_t = 8;
pub const norm_abcdefgh: norm_format_tag_t = 9;
pub const norm_abcdefghi: norm_format_tag_t = 10;
pub const norm_abcdefghij: norm_format_tag_t = 11;
pub const norm_abcdefghijk: norm_format_tag_t = 12;
pub const norm_abcdefghijkl: norm_format_tag_t = 13;
pub const norm_ba: norm_format_tag_t = 14;
pub const norm_acb: norm_format_tag_t = 15;
pub const norm_bac: norm_format_tag_t = 16;
pub const norm_bca: norm_format_tag_t = 17;
pub const norm_cab: norm_format_tag_t = 18;
pub const norm_cba: norm_format_tag_t = 19;
pub const norm_abdc: norm_format_tag_t = 20;
pub const norm_acbd: norm_format_tag_t = 21;
pub const norm_acdb: norm_format_tag_t = 22;
pub const norm_adbc: norm_format_tag_t = 23;
pub const norm_adcb: norm_format_tag_t = 24;
pub const norm_bacd: norm_format_tag_t = 25;
pub const norm_bcda: norm_format_tag_t = 26;
pub const norm_cdab: norm_format_tag_t = 27;
pub const norm_cdba: norm_format_tag_t = 28;
pub const norm_dcab: norm_format_tag_t = 29;
pub const norm_abced: norm_format_tag_t = 30;
pub const norm_abdec: norm_format_tag_t = 31;
pub const norm_acbde: norm_format_tag_t = 32;
pub const norm_acdeb: norm_format_tag_t = 33;
pub const norm_adecb: norm_format_tag_t = 34;
pub const norm_bacde: norm_format_tag_t = 35;
pub const norm_bcdea: norm_format_tag_t = 36;
pub const norm_cdeab: norm_format_tag_t = 37;
pub const norm_cdeba: norm_format_tag_t = 38;
pub const norm_decab: norm_format_tag_t = 39;
pub const norm_abcdfe: norm_format_tag_t = 40;
pub const norm_abdefc: norm_format_tag_t = 41;
pub const norm_abdfce: norm_format_tag_t = 42;
pub const norm_acbdef: norm_format_tag_t = 43;
pub const norm_adefcb: norm_format_tag_t = 44;
pub const norm_defcab: norm_format_tag_t = 45;
pub const norm_abcdegf: norm_format_tag_t = 46;
pub const norm_abcdefhg: norm_format_tag_t = 47;
pub const norm_abcdefgih: norm_format_tag_t = 48;
pub const norm_abcdefghji: norm_format_tag_t = 49;
pub const norm_abcdefghikj: norm_format_tag_t = 50;
pub const norm_abcdefghijlk: norm_format_tag_t = 51;
pub const norm_bcad: norm_format_tag_t = 835;
pub const norm_cabd: norm_format_tag_t = 836;
pub const norm_dabc: norm_format_tag_t = 837;
pub const norm_Abc16a: norm_format_tag_t = 52;
pub const norm_ABc16a16b: norm_format_tag_t = 53;
pub const norm_ABc32a32b: norm_format_tag_t = 54;
pub const norm_ABc4a4b: norm_format_tag_t = 55;
pub const norm_aBc16b: norm_format_tag_t = 56;
pub const norm_ABc16b16a: norm_format_tag_t = 57;
pub const norm_Abc4a: norm_format_tag_t = 58;
pub const norm_aBc32b: norm_format_tag_t = 59;
pub const norm_aBc4b: norm_format_tag_t = 60;
pub const norm_ABc4b16a4b: norm_format_tag_t = 61;
pub const norm_ABc2b8a4b: norm_format_tag_t = 62;
pub const norm_ABc16b16a4b: norm_format_tag_t = 63;
pub const norm_ABc16b16a2b: norm_format_tag_t = 64;
pub const norm_ABc4b4a: norm_format_tag_t = 65;
pub const norm_ABc8a16b2a: norm_format_tag_t = 66;
pub const norm_ABc8a8b: norm_format_tag_t = 67;
pub const norm_ABc8a4b: norm_format_tag_t = 68;
pub const norm_aBc8b: norm_format_tag_t = 69;
pub const norm_ABc8b16a2b: norm_format_tag_t = 70;
pub const norm_BAc8a16b2a: norm_format_tag_t = 71;
pub const norm_ABc8b8a: norm_format_tag_t = 72;
pub const norm_Abcd16a: norm_format_tag_t = 73;
pub const norm_Abcd8a: norm_format_tag_t = 74;
pub const norm_ABcd16a16b: norm_format_tag_t = 75;
pub const norm_Abcd32a: norm_format_tag_t = 76;
pub const norm_ABcd32a32b: norm_format_tag_t = 77;
pub const norm_aBcd16b: norm_format_tag_t = 78;
pub const norm_ABcd16b16a: norm_format_tag_t = 79;
pub const norm_aBCd16b16c: norm_format_tag_t = 80;
pub const norm_aBCd16c16b: norm_format_tag_t = 81;
pub const norm_Abcd4a: norm_format_tag_t = 82;
pub const norm_aBcd32b: norm_format_tag_t = 83;
pub const norm_aBcd4b: norm_format_tag_t = 84;
pub const norm_ABcd4b16a4b: norm_format_tag_t = 85;
pub const norm_ABcd16b16a4b: norm_format_tag_t = 86;
pub const norm_ABcd16b16a2b: norm_format_tag_t = 87;
pub const norm_ABcd4b4a: norm_format_tag_t = 88;
pub const norm_ABcd4a4b: norm_format_tag_t = 89;
pub const norm_aBCd2c4b2c: norm_format_tag_t = 90;
pub const norm_aBCd4b8c2b: norm_format_tag_t = 91;
pub const norm_aBCd4c16b4c: norm_format_tag_t = 92;
pub const norm_aBCd2c8b4c: norm_format_tag_t = 93;
pub const norm_aBCd16c16b4c: norm_format_tag_t = 94;
pub const norm_aBCd16c16b2c: norm_format_tag_t = 95;
pub const norm_aBCd4c4b: norm_format_tag_t = 96;
pub const norm_aBCd4b4c: norm_format_tag_t = 97;
pub const norm_ABcd8a16b2a: norm_format_tag_t = 98;
pub const norm_ABcd2b8a4b: norm_format_tag_t = 99;
pub const norm_ABcd8a8b: norm_format_tag_t = 100;
pub const norm_ABcd8a4b: norm_format_tag_t = 101;
pub const norm_aBcd8b: norm_format_tag_t = 102;
pub const norm_aBCd4c8b2c: norm_format_tag_t = 103;
pub const norm_ABcd8b16a2b: norm_format_tag_t = 104;
pub const norm_aBCd8b16c2b: norm_format_tag_t = 105;
pub const norm_BAcd8a16b2a: norm_format_tag_t = 106;
pub const norm_ABcd8b8a: norm_format_tag_t = 107;
pub const norm_aBCd8b8c: norm_format_tag_t = 108;
pub const norm_aBCd8b4c: norm_format_tag_t = 109;
pub const norm_aBCd8c16b2c: norm_format_tag_t = 110;
pub const norm_ABcde8a16b2a: norm_format_tag_t = 111;
pub const norm_aCBd8b16c2b: norm_format_tag_t = 112;
pub const norm_aBCd8c8b: norm_format_tag_t = 113;
pub const norm_Abcde16a: norm_format_tag_t = 114;
pub const norm_Abcde32a: norm_format_tag_t = 115;
pub const norm_ABcde16a16b: norm_format_tag_t = 116;
pub const norm_BAcde8a16b2a: norm_format_tag_t = 117;
pub const norm_aBCd2b4c2b: norm_format_tag_t = 118;
pub const norm_ABcde4b16a4b: norm_format_tag_t = 119;
pub const norm_ABcde2b8a4b: norm_format_tag_t = 120;
pub const norm_aBcde16b: norm_format_tag_t = 121;
pub const norm_ABcde16b16a: norm_format_tag_t = 122;
pub const norm_aBCde16b16c: norm_format_tag_t = 123;
pub const norm_aBCde16c16b: norm_format_tag_t = 124;
pub const norm_aBCde2c8b4c: norm_format_tag_t = 125;
pub const norm_Abcde4a: norm_format_tag_t = 126;
pub const norm_aBcde32b: norm_format_tag_t = 127;
pub const norm_aBcde4b: norm_format_tag_t = 128;
pub const norm_ABcde4b4a: norm_format_tag_t = 129;
pub const norm_ABcde4a4b: norm_format_tag_t = 130;
pub const norm_aBCde4b4c: norm_format_tag_t = 131;
pub const norm_aBCde2c4b2c: norm_format_tag_t = 132;
pub const norm_aBCde4b8c2b: norm_format_tag_t = 133;
pub const norm_aBCde4c16b4c: norm_format_tag_t = 134;
pub const norm_aBCde16c16b4c: norm_format_tag_t = 135;
pub const norm_aBCde16c16b2c: norm_format_tag_t = 136;
pub const norm_aBCde4c4b: norm_format_tag_t = 137;
pub const norm_Abcde8a: norm_format_tag_t = 138;
pub const norm_ABcde8a8b: norm_format_tag_t = 139;
pub const norm_ABcde8a4b: norm_format_tag_t = 140;
pub const norm_BAcde16b16a: norm_format_tag_t = 141;
pub const norm_aBcde8b: norm_format_tag_t = 142;
pub const norm_ABcde8b16a2b: norm_format_tag_t = 143;
pub const norm_aBCde8b16c2b: norm_format_tag_t = 144;
pub const norm_aBCde4c8b2c: norm_format_tag_t = 145;
pub const norm_aCBde8b16c2b: norm_format_tag_t = 146;
pub const norm_ABcde8b8a: norm_format_tag_t = 147;
pub const norm_ABcde32a32b: norm_format_tag_t = 148;
pub const norm_aBCde8b8c: norm_format_tag_t = 149;
pub const norm_aBCde8b4c: norm_format_tag_t = 150;
pub const norm_ABc4a8b8a4b: norm_format_tag_t = 151;
pub const norm_ABcd4a8b8a4b: norm_format_tag_t = 152;
pub const norm_ABcde4a8b8a4b: norm_format_tag_t = 153;
pub const norm_BAc4b8a8b4a: norm_format_tag_t = 154;
pub const norm_BAcd4b8a8b4a: norm_format_tag_t = 155;
pub const norm_BAcde4b8a8b4a: norm_format_tag_t = 156;
pub const norm_ABcd2a8b8a2b: norm_format_tag_t = 157;
pub const norm_aBCd4b8c8b4c: norm_format_tag_t = 158;
pub const norm_aBCde4b8c8b4c: norm_format_tag_t = 159;
pub const norm_aBCde2b8c8b2c: norm_format_tag_t = 160;
pub const norm_aBCde8c16b2c: norm_format_tag_t = 161;
pub const norm_aBCde8c8b: norm_format_tag_t = 162;
pub const norm_aBCde2b4c2b: norm_format_tag_t = 163;
pub const norm_aBcdef16b: norm_format_tag_t = 164;
pub const norm_aBCdef16b16c: norm_format_tag_t = 165;
pub const norm_aBCdef16c16b: norm_format_tag_t = 166;
pub const norm_aBCdef4c16b4c: norm_format_tag_t = 167;
pub const norm_aBCdef2c8b4c: norm_format_tag_t = 168;
pub const norm_aBCdef4c8b2c: norm_format_tag_t = 169;
pub const norm_aBCdef2b4c2b: norm_format_tag_t = 170;
pub const norm_aBcdef4b: norm_format_tag_t = 171;
pub const norm_aBCdef4c4b: norm_format_tag_t = 172;
pub const norm_aBCdef4b4c: norm_format_tag_t = 173;
pub const norm_aBCdef2c4b2c: norm_format_tag_t = 174;
pub const norm_aBCdef4b8c2b: norm_format_tag_t = 175;
pub const norm_aBCdef8b8c: norm_format_tag_t = 176;
pub const norm_aBCdef8b4c: norm_format_tag_t = 177;
pub const norm_aBCdef8c16b2c: norm_format_tag_t = 178;
pub const norm_aBCdef4b8c8b4c: norm_format_tag_t = 179;
pub const norm_aBCdef8b16c2b: norm_format_tag_t = 180;
pub const norm_aCBdef8b16c2b: norm_format_tag_t = 181;
pub const norm_aBCdef8c8b: norm_format_tag_t = 182;
pub const norm_aBdc16b: norm_format_tag_t = 183;
pub const norm_aBdC16b2c: norm_format_tag_t = 184;
pub const norm_aBdC16b4c: norm_format_tag_t = 185;
pub const norm_aBdc4b: norm_format_tag_t = 186;
pub const norm_aBdc8b: norm_format_tag_t = 187;
pub const norm_aBdec16b: norm_format_tag_t = 188;
pub const norm_aBdeC16b2c: norm_format_tag_t = 189;
pub const norm_aBdeC16b4c: norm_format_tag_t = 190;
pub const norm_aBdec32b: norm_format_tag_t = 191;
pub const norm_aBdec4b: norm_format_tag_t = 192;
pub const norm_aBdec8b: norm_format_tag_t = 193;
pub const norm_aBdefc16b: norm_format_tag_t = 194;
pub const norm_aBdefC16b2c: norm_format_tag_t = 195;
pub const norm_aCBdef16c16b: norm_format_tag_t = 196;
pub const norm_aBdefc4b: norm_format_tag_t = 197;
pub const norm_aBdefc8b: norm_format_tag_t = 198;
pub const norm_Abcdef16a: norm_format_tag_t = 199;
pub const norm_Abcdef32a: norm_format_tag_t = 200;
pub const norm_aBedc16b: norm_format_tag_t = 201;
pub const norm_Acb16a: norm_format_tag_t = 202;
pub const norm_AcB16a2b: norm_format_tag_t = 203;
pub const norm_AcB16a4b: norm_format_tag_t = 204;
pub const norm_Acb4a: norm_format_tag_t = 205;
pub const norm_Acb8a: norm_format_tag_t = 206;
pub const norm_aCBd16b16c: norm_format_tag_t = 207;
pub const norm_aCBd16c16b: norm_format_tag_t = 208;
pub const norm_aCBde16b16c: norm_format_tag_t = 209;
pub const norm_aCBde16c16b: norm_format_tag_t = 210;
pub const norm_Acdb16a: norm_format_tag_t = 211;
pub const norm_AcdB16a2b: norm_format_tag_t = 212;
pub const norm_AcdB16a4b: norm_format_tag_t = 213;
pub const norm_Acdb32a: norm_format_tag_t = 214;
pub const norm_Acdb4a: norm_format_tag_t = 215;
pub const norm_Acdb8a: norm_format_tag_t = 216;
pub const norm_Acdeb16a: norm_format_tag_t = 217;
pub const norm_AcdeB16a2b: norm_format_tag_t = 218;
pub const norm_Acdeb4a: norm_format_tag_t = 219;
pub const norm_Acdeb8a: norm_format_tag_t = 220;
pub const norm_Adcb16a: norm_format_tag_t = 221;
pub const norm_BAc16a16b: norm_format_tag_t = 222;
pub const norm_BAc16b16a: norm_format_tag_t = 223;
pub const norm_BAcd16a16b: norm_format_tag_t = 224;
pub const norm_BAcd16b16a: norm_format_tag_t = 225;
pub const norm_aCBd4c8b8c4b: norm_format_tag_t = 226;
pub const norm_aCBde4c8b8c4b: norm_format_tag_t = 227;
pub const norm_aCBdef4c8b8c4b: norm_format_tag_t = 228;
pub const norm_BAcde16a16b: norm_format_tag_t = 229;
pub const norm_aCBdef16b16c: norm_format_tag_t = 230;
pub const norm_ABc16b32a: norm_format_tag_t = 231;
pub const norm_ABc16b64a: norm_format_tag_t = 232;
pub const norm_ABc4b32a4b: norm_format_tag_t = 233;
pub const norm_ABc4b64a4b: norm_format_tag_t = 234;
pub const norm_ABc8b32a2b: norm_format_tag_t = 235;
pub const norm_ABc8b64a2b: norm_format_tag_t = 236;
pub const norm_AB16b16a: norm_format_tag_t = 237;
pub const norm_AB16b32a: norm_format_tag_t = 238;
pub const norm_AB16b64a: norm_format_tag_t = 239;
pub const norm_AB8b16a2b: norm_format_tag_t = 240;
pub const norm_AB8b32a2b: norm_format_tag_t = 241;
pub const norm_AB8b64a2b: norm_format_tag_t = 242;
pub const norm_AB4b16a4b: norm_format_tag_t = 243;
pub const norm_AB4b32a4b: norm_format_tag_t = 244;
pub const norm_AB4b64a4b: norm_format_tag_t = 245;
pub const norm_AB16b16a4b: norm_format_tag_t = 246;
pub const norm_ABcd16b32a: norm_format_tag_t = 247;
pub const norm_ABcd16b64a: norm_format_tag_t = 248;
pub const norm_ABcd4b32a4b: norm_format_tag_t = 249;
pub const norm_ABcd4b64a4b: norm_format_tag_t = 250;
pub const norm_ABcd8b32a2b: norm_format_tag_t = 251;
pub const norm_ABcd8b64a2b: norm_format_tag_t = 252;
pub const norm_ABcde4b32a4b: norm_format_tag_t = 253;
pub const norm_ABcde4b64a4b: norm_format_tag_t = 254;
pub const norm_ABcde16b16a4b: norm_format_tag_t = 255;
pub const norm_ABcde16b16a2b: norm_format_tag_t = 256;
pub const norm_ABcde16b32a: norm_format_tag_t = 257;
pub const norm_ABcde16b64a: norm_format_tag_t = 258;
pub const norm_ABcde8b32a2b: norm_format_tag_t = 259;
pub const norm_ABcde8b64a2b: norm_format_tag_t = 260;
pub const norm_aBCdef16c16b4c: norm_format_tag_t = 261;
pub const norm_aBCdef16c16b2c: norm_format_tag_t = 262;
pub const norm_AB32a32b8a4b: norm_format_tag_t = 263;
pub const norm_AB8a4b: norm_format_tag_t = 264;
pub const norm_AB32a32b8a2b: norm_format_tag_t = 265;
pub const norm_AB8a2b: norm_format_tag_t = 266;
pub const norm_abDc32d: norm_format_tag_t = 267;
pub const norm_abDC32d4c: norm_format_tag_t = 268;
pub const norm_abdEc32e: norm_format_tag_t = 269;
pub const norm_abdEC32e2c: norm_format_tag_t = 270;
pub const norm_abdEC32e4c: norm_format_tag_t = 271;
pub const norm_aBdefC16b4c: norm_format_tag_t = 272;
pub const norm_AcdeB16a4b: norm_format_tag_t = 273;
pub const norm_ABcd16a16b2a: norm_format_tag_t = 274;
pub const norm_ABc16a16b2a: norm_format_tag_t = 275;
pub const norm_aBCd16b16c2b: norm_format_tag_t = 276;
pub const norm_aBCde16b16c2b: norm_format_tag_t = 277;
pub const norm_Acb32a: norm_format_tag_t = 278;
pub const norm_AcB32a2b: norm_format_tag_t = 279;
pub const norm_AcB32a4b: norm_format_tag_t = 280;
pub const norm_Acb48a: norm_format_tag_t = 281;
pub const norm_AcB48a2b: norm_format_tag_t = 282;
pub const norm_AcB48a4b: norm_format_tag_t = 283;
pub const norm_Acb64a: norm_format_tag_t = 284;
pub const norm_AcB64a2b: norm_format_tag_t = 285;
pub const norm_AcB64a4b: norm_format_tag_t = 286;
pub const norm_cBa2b: norm_format_tag_t = 287;
pub const norm_cBa4b: norm_format_tag_t = 288;
pub const norm_aBdc32b: norm_format_tag_t = 289;
pub const norm_aBdC32b2c: norm_format_tag_t = 290;
pub const norm_aBdC32b4c: norm_format_tag_t = 291;
pub const norm_aBdc48b: norm_format_tag_t = 292;
pub const norm_aBdC48b2c: norm_format_tag_t = 293;
pub const norm_aBdC48b4c: norm_format_tag_t = 294;
pub const norm_aBdc64b: norm_format_tag_t = 295;
pub const norm_aBdC64b2c: norm_format_tag_t = 296;
pub const norm_aBdC64b4c: norm_format_tag_t = 297;
pub const norm_adCb2c: norm_format_tag_t = 298;
pub const norm_adCb4c: norm_format_tag_t = 299;
pub const norm_AcdB32a2b: norm_format_tag_t = 300;
pub const norm_AcdB32a4b: norm_format_tag_t = 301;
pub const norm_Acdb48a: norm_format_tag_t = 302;
pub const norm_AcdB48a2b: norm_format_tag_t = 303;
pub const norm_AcdB48a4b: norm_format_tag_t = 304;
pub const norm_Acdb64a: norm_format_tag_t = 305;
pub const norm_AcdB64a2b: norm_format_tag_t = 306;
pub const norm_AcdB64a4b: norm_format_tag_t = 307;
pub const norm_cdBa2b: norm_format_tag_t = 308;
pub const norm_cdBa4b: norm_format_tag_t = 309;
pub const norm_aBdeC32b2c: norm_format_tag_t = 310;
pub const norm_aBdeC32b4c: norm_format_tag_t = 311;
pub const norm_aBdec48b: norm_format_tag_t = 312;
pub const norm_aBdeC48b2c: norm_format_tag_t = 313;
pub const norm_aBdeC48b4c: norm_format_tag_t = 314;
pub const norm_aBdec64b: norm_format_tag_t = 315;
pub const norm_aBdeC64b2c: norm_format_tag_t = 316;
pub const norm_aBdeC64b4c: norm_format_tag_t = 317;
pub const norm_adeCb2c: norm_format_tag_t = 318;
pub const norm_adeCb4c: norm_format_tag_t = 319;
pub const norm_Acdeb32a: norm_format_tag_t = 320;
pub const norm_AcdeB32a2b: norm_format_tag_t = 321;
pub const norm_AcdeB32a4b: norm_format_tag_t = 322;
pub const norm_Acdeb48a: norm_format_tag_t = 323;
pub const norm_AcdeB48a2b: norm_format_tag_t = 324;
pub const norm_AcdeB48a4b: norm_format_tag_t = 325;
pub const norm_Acdeb64a: norm_format_tag_t = 326;
pub const norm_AcdeB64a2b: norm_format_tag_t = 327;
pub const norm_AcdeB64a4b: norm_format_tag_t = 328;
pub const norm_cdeBa2b: norm_format_tag_t = 329;
pub const norm_cdeBa4b: norm_format_tag_t = 330;
pub const norm_aBdefc32b: norm_format_tag_t = 331;
pub const norm_aBdefC32b2c: norm_format_tag_t = 332;
pub const norm_aBdefC32b4c: norm_format_tag_t = 333;
pub const norm_aBdefc48b: norm_format_tag_t = 334;
pub const norm_aBdefC48b2c: norm_format_tag_t = 335;
pub const norm_aBdefC48b4c: norm_format_tag_t = 336;
pub const norm_aBdefc64b: norm_format_tag_t = 337;
pub const norm_aBdefC64b2c: norm_format_tag_t = 338;
pub const norm_aBdefC64b4c: norm_format_tag_t = 339;
pub const norm_adefCb2c: norm_format_tag_t = 340;
pub const norm_adefCb4c: norm_format_tag_t = 341;
pub const norm_AB16b32a4b: norm_format_tag_t = 342;
pub const norm_AB16b48a4b: norm_format_tag_t = 343;
pub const norm_AB16b64a4b: norm_format_tag_t = 344;
pub const norm_AB16b16a2b: norm_format_tag_t = 345;
pub const norm_AB16b32a2b: norm_format_tag_t = 346;
pub const norm_AB16b48a2b: norm_format_tag_t = 347;
pub const norm_AB16b64a2b: norm_format_tag_t = 348;
pub const norm_ABc16b32a4b: norm_format_tag_t = 349;
pub const norm_ABc16b48a4b: norm_format_tag_t = 350;
pub const norm_ABc16b64a4b: norm_format_tag_t = 351;
pub const norm_ABc16b32a2b: norm_format_tag_t = 352;
pub const norm_ABc16b48a2b: norm_format_tag_t = 353;
pub const norm_ABc16b64a2b: norm_format_tag_t = 354;
pub const norm_ABcd16b32a4b: norm_format_tag_t = 355;
pub const norm_ABcd16b48a4b: norm_format_tag_t = 356;
pub const norm_ABcd16b64a4b: norm_format_tag_t = 357;
pub const norm_ABcd16b32a2b: norm_format_tag_t = 358;
pub const norm_ABcd16b48a2b: norm_format_tag_t = 359;
pub const norm_ABcd16b64a2b: norm_format_tag_t = 360;
pub const norm_ABcde16b32a4b: norm_format_tag_t = 361;
pub const norm_ABcde16b48a4b: norm_format_tag_t = 362;
pub const norm_ABcde16b64a4b: norm_format_tag_t = 363;
pub const norm_ABcde16b32a2b: norm_format_tag_t = 364;
pub const norm_ABcde16b48a2b: norm_format_tag_t = 365;
pub const norm_ABcde16b64a2b: norm_format_tag_t = 366;
pub const norm_ABc32a16b: norm_format_tag_t = 367;
pub const norm_ABcd32a16b: norm_format_tag_t = 368;
pub const norm_ABcde32a16b: norm_format_tag_t = 369;
pub const norm_AB48a16b: norm_format_tag_t = 370;
pub const norm_AB48a32b: norm_format_tag_t = 371;
pub const norm_ABc40a16b: norm_format_tag_t = 372;
pub const norm_ABc40a32b: norm_format_tag_t = 373;
pub const norm_aBC48b16c: norm_format_tag_t = 374;
pub const norm_aBC48b32c: norm_format_tag_t = 375;
pub const norm_ABcd40a16b: norm_format_tag_t = 376;
pub const norm_ABcd40a32b: norm_format_tag_t = 377;
pub const norm_abCd32c: norm_format_tag_t = 378;
pub const norm_abdCe32c: norm_format_tag_t = 379;
pub const norm_abdCE32c2e: norm_format_tag_t = 380;
pub const norm_BA16a16b2a: norm_format_tag_t = 381;
pub const norm_BA16a32b2a: norm_format_tag_t = 382;
pub const norm_BA16a48b2a: norm_format_tag_t = 383;
pub const norm_BA16a64b2a: norm_format_tag_t = 384;
pub const norm_BA16a16b4a: norm_format_tag_t = 385;
pub const norm_BA16a32b4a: norm_format_tag_t = 386;
pub const norm_BA16a48b4a: norm_format_tag_t = 387;
pub const norm_BA16a64b4a: norm_format_tag_t = 388;
pub const norm_ABcd8a2b: norm_format_tag_t = 389;
pub const norm_aBdeC16c16b2c: norm_format_tag_t = 390;
pub const norm_aBdeC16c16b4c: norm_format_tag_t = 391;
pub const norm_aBdefC16c16b2c: norm_format_tag_t = 392;
pub const norm_AcB16b16a2b: norm_format_tag_t = 393;
pub const norm_AcB16b16a4b: norm_format_tag_t = 394;
pub const norm_AcdB16b16a2b: norm_format_tag_t = 395;
pub const norm_AcdB16b16a4b: norm_format_tag_t = 396;
pub const norm_AcdeB16b16a2b: norm_format_tag_t = 397;
pub const norm_aBdefC16c16b4c: norm_format_tag_t = 398;
pub const norm_AcdeB16b16a4b: norm_format_tag_t = 399;
pub const norm_AcB16b32a2b: norm_format_tag_t = 400;
pub const norm_AcB16b32a4b: norm_format_tag_t = 401;
pub const norm_AcB16b48a2b: norm_format_tag_t = 402;
pub const norm_AcB16b48a4b: norm_format_tag_t = 403;
pub const norm_AcB16b64a2b: norm_format_tag_t = 404;
pub const norm_AcB16b64a4b: norm_format_tag_t = 405;
pub const norm_aBdC16c16b2c: norm_format_tag_t = 406;
pub const norm_aBdC16c16b4c: norm_format_tag_t = 407;
pub const norm_aBdC16c32b2c: norm_format_tag_t = 408;
pub const norm_aBdC16c32b4c: norm_format_tag_t = 409;
pub const norm_aBdC16c48b2c: norm_format_tag_t = 410;
pub const norm_aBdC16c48b4c: norm_format_tag_t = 411;
pub const norm_aBdC16c64b2c: norm_format_tag_t = 412;
pub const norm_aBdC16c64b4c: norm_format_tag_t = 413;
pub const norm_AcdB16b32a2b: norm_format_tag_t = 414;
pub const norm_AcdB16b32a4b: norm_format_tag_t = 415;
pub const norm_AcdB16b48a2b: norm_format_tag_t = 416;
pub const norm_AcdB16b48a4b: norm_format_tag_t = 417;
pub const norm_AcdB16b64a2b: norm_format_tag_t = 418;
pub const norm_AcdB16b64a4b: norm_format_tag_t = 419;
pub const norm_aBdeC16c32b2c: norm_format_tag_t = 420;
pub const norm_aBdeC16c32b4c: norm_format_tag_t = 421;
pub const norm_aBdeC16c48b2c: norm_format_tag_t = 422;
pub const norm_aBdeC16c48b4c: norm_format_tag_t = 423;
pub const norm_aBdeC16c64b2c: norm_format_tag_t = 424;
pub const norm_aBdeC16c64b4c: norm_format_tag_t = 425;
pub const norm_AcdeB16b32a2b: norm_format_tag_t = 426;
pub const norm_AcdeB16b32a4b: norm_format_tag_t = 427;
pub const norm_AcdeB16b48a2b: norm_format_tag_t = 428;
pub const norm_AcdeB16b48a4b: norm_format_tag_t = 429;
pub const norm_AcdeB16b64a2b: norm_format_tag_t = 430;
pub const norm_AcdeB16b64a4b: norm_format_tag_t = 431;
pub const norm_aBdefC16c32b2c: norm_format_tag_t = 432;
pub const norm_aBdefC16c32b4c: norm_format_tag_t = 433;
pub const norm_aBdefC16c48b2c: norm_format_tag_t = 434;
pub const norm_aBdefC16c48b4c: norm_format_tag_t = 435;
pub const norm_aBdefC16c64b2c: norm_format_tag_t = 436;
pub const norm_aBdefC16c64b4c: norm_format_tag_t = 437;
pub const norm_decbA16a: norm_format_tag_t = 438;
pub const norm_ABc4a2b: norm_format_tag_t = 439;
pub const norm_ABc8a2b: norm_format_tag_t = 440;
pub const norm_aBCd8b2c: norm_format_tag_t = 441;
pub const norm_ABcde4a2b: norm_format_tag_t = 442;
pub const norm_ABcde8a2b: norm_format_tag_t = 443;
pub const norm_ABcde40a16b: norm_format_tag_t = 444;
pub const norm_ABcde40a32b: norm_format_tag_t = 445;
pub const norm_aBCde8b2c: norm_format_tag_t = 446;
pub const norm_ABcde4a8b8a2b: norm_format_tag_t = 447;
pub const norm_ABcd4a8b8a2b: norm_format_tag_t = 448;
pub const norm_ABc4a8b8a2b: norm_format_tag_t = 449;
pub const norm_aBCdef4b8c8b2c: norm_format_tag_t = 450;
pub const norm_aBCde4b8c8b2c: norm_format_tag_t = 451;
pub const norm_aBCd4b8c8b2c: norm_format_tag_t = 452;
pub const norm_BAcde4b8a8b2a: norm_format_tag_t = 453;
pub const norm_BAcd4b8a8b2a: norm_format_tag_t = 454;
pub const norm_BAc4b8a8b2a: norm_format_tag_t = 455;
pub const norm_aCBdef4c8b8c2b: norm_format_tag_t = 456;
pub const norm_aCBde4c8b8c2b: norm_format_tag_t = 457;
pub const norm_aCBd4c8b8c2b: norm_format_tag_t = 458;
pub const norm_aBCdef8b2c: norm_format_tag_t = 459;
pub const norm_AB32a16b: norm_format_tag_t = 460;
pub const norm_AB32a32b: norm_format_tag_t = 461;
pub const norm_BA4b8a8b2a: norm_format_tag_t = 462;
pub const norm_BA4b8a8b4a: norm_format_tag_t = 463;
pub const norm_aBC32b16c: norm_format_tag_t = 464;
pub const norm_aBC32b32c: norm_format_tag_t = 465;
pub const norm_aCB4c8b8c2b: norm_format_tag_t = 466;
pub const norm_aCB4c8b8c4b: norm_format_tag_t = 467;
pub const norm_ABcd4a2b: norm_format_tag_t = 468;
pub const norm_ABc2b8a16b4a: norm_format_tag_t = 469;
pub const norm_ABcd2b8a16b4a: norm_format_tag_t = 470;
pub const norm_ABcde2b8a16b4a: norm_format_tag_t = 471;
pub const norm_ABc2a8b16a4b: norm_format_tag_t = 472;
pub const norm_ABc2a8b16a2b: norm_format_tag_t = 473;
pub const norm_ABc2b32a8b: norm_format_tag_t = 474;
pub const norm_ABcd2a8b16a4b: norm_format_tag_t = 475;
pub const norm_ABcd2a8b16a2b: norm_format_tag_t = 476;
pub const norm_aCBd2c8b16c2b: norm_format_tag_t = 477;
pub const norm_ABcd2b32a8b: norm_format_tag_t = 478;
pub const norm_aBCd2c8b16c2b: norm_format_tag_t = 479;
pub const norm_ABcde2a8b16a4b: norm_format_tag_t = 480;
pub const norm_ABcde2a8b16a2b: norm_format_tag_t = 481;
pub const norm_aCBde2c8b16c2b: norm_format_tag_t = 482;
pub const norm_ABcde2b32a8b: norm_format_tag_t = 483;
pub const norm_aBC2b8c16b2c: norm_format_tag_t = 484;
pub const norm_aBCd2b8c16b2c: norm_format_tag_t = 485;
pub const norm_aBCde2b8c16b2c: norm_format_tag_t = 486;
pub const norm_aBCdef2b8c16b2c: norm_format_tag_t = 487;
pub const norm_BAcde2b8a16b4a: norm_format_tag_t = 488;
pub const norm_BAcd2b8a16b4a: norm_format_tag_t = 489;
pub const norm_BAc2b8a16b4a: norm_format_tag_t = 490;
pub const norm_BAcde2b8a16b2a: norm_format_tag_t = 491;
pub const norm_BAcd2b8a16b2a: norm_format_tag_t = 492;
pub const norm_BAc2b8a16b2a: norm_format_tag_t = 493;
pub const norm_aBCde2c8b16c2b: norm_format_tag_t = 494;
pub const norm_aBCdef2c8b16c2b: norm_format_tag_t = 495;
pub const norm_aCBdef2c8b16c2b: norm_format_tag_t = 496;
pub const norm_aBCd2b8c16b4c: norm_format_tag_t = 497;
pub const norm_aBCde2b8c16b4c: norm_format_tag_t = 498;
pub const norm_BA4b8a16b2a: norm_format_tag_t = 499;
pub const norm_BA4b8a16b4a: norm_format_tag_t = 500;
pub const norm_aCB4c8b16c2b: norm_format_tag_t = 501;
pub const norm_aCB4c8b16c4b: norm_format_tag_t = 502;
pub const norm_BA16a16b: norm_format_tag_t = 503;
pub const norm_BA16a32b: norm_format_tag_t = 504;
pub const norm_BA16a48b: norm_format_tag_t = 505;
pub const norm_BA16a64b: norm_format_tag_t = 506;
pub const norm_aCB16c2b: norm_format_tag_t = 507;
pub const norm_aCB16c4b: norm_format_tag_t = 508;
pub const norm_BA16b2a: norm_format_tag_t = 509;
pub const norm_BA16b4a: norm_format_tag_t = 510;
pub const norm_aBC16b16c: norm_format_tag_t = 511;
pub const norm_aBC16b32c: norm_format_tag_t = 512;
pub const norm_AB16a16b: norm_format_tag_t = 513;
pub const norm_AB16a32b: norm_format_tag_t = 514;
pub const norm_ABcde16a16b2a: norm_format_tag_t = 515;
pub const norm_aBCdef16b16c2b: norm_format_tag_t = 516;
pub const norm_Acedb16a: norm_format_tag_t = 517;
pub const norm_aBdfec16b: norm_format_tag_t = 518;
pub const norm_abdEC64e2c: norm_format_tag_t = 519;
pub const norm_abdEC64e4c: norm_format_tag_t = 520;
pub const norm_aCB16b16c: norm_format_tag_t = 521;
pub const norm_aCB16b32c: norm_format_tag_t = 522;
pub const norm_aCB16b48c: norm_format_tag_t = 523;
pub const norm_aCB16b64c: norm_format_tag_t = 524;
pub const norm_aCB16b16c2b: norm_format_tag_t = 525;
pub const norm_aCB16b32c2b: norm_format_tag_t = 526;
pub const norm_aCB16b48c2b: norm_format_tag_t = 527;
pub const norm_aCB16b64c2b: norm_format_tag_t = 528;
pub const norm_aCB16b16c4b: norm_format_tag_t = 529;
pub const norm_aCB16b32c4b: norm_format_tag_t = 530;
pub const norm_aCB16b48c4b: norm_format_tag_t = 531;
pub const norm_aCB16b64c4b: norm_format_tag_t = 532;
pub const norm_abCd4c: norm_format_tag_t = 533;
pub const norm_abCde4c: norm_format_tag_t = 534;
pub const norm_abCdef4c: norm_format_tag_t = 535;
pub const norm_abCde32c: norm_format_tag_t = 536;
pub const norm_abCdef32c: norm_format_tag_t = 537;
pub const norm_ABcd16a32b: norm_format_tag_t = 538;
pub const norm_decbA8a: norm_format_tag_t = 539;
pub const norm_aCdefB16b32c2b: norm_format_tag_t = 540;
pub const norm_aCdefB16b32c4b: norm_format_tag_t = 541;
pub const norm_aCdefB16b48c2b: norm_format_tag_t = 542;
pub const norm_aCdefB16b48c4b: norm_format_tag_t = 543;
pub const norm_aCdefB16b64c2b: norm_format_tag_t = 544;
pub const norm_aCdefB16b64c4b: norm_format_tag_t = 545;
pub const norm_BcdeA16a32b2a: norm_format_tag_t = 546;
pub const norm_BcdeA16a32b4a: norm_format_tag_t = 547;
pub const norm_BcdeA16a48b2a: norm_format_tag_t = 548;
pub const norm_BcdeA16a48b4a: norm_format_tag_t = 549;
pub const norm_BcdeA16a64b2a: norm_format_tag_t = 550;
pub const norm_BcdeA16a64b4a: norm_format_tag_t = 551;
pub const norm_aCdefb32c: norm_format_tag_t = 552;
pub const norm_aCdefB32c2b: norm_format_tag_t = 553;
pub const norm_aCdefB32c4b: norm_format_tag_t = 554;
pub const norm_aCdefb48c: norm_format_tag_t = 555;
pub const norm_aCdefB48c2b: norm_format_tag_t = 556;
pub const norm_aCdefB48c4b: norm_format_tag_t = 557;
pub const norm_aCdefb64c: norm_format_tag_t = 558;
pub const norm_aCdefB64c2b: norm_format_tag_t = 559;
pub const norm_aCdefB64c4b: norm_format_tag_t = 560;
pub const norm_Bcdea32b: norm_format_tag_t = 561;
pub const norm_BcdeA32b2a: norm_format_tag_t = 562;
pub const norm_BcdeA32b4a: norm_format_tag_t = 563;
pub const norm_Bcdea48b: norm_format_tag_t = 564;
pub const norm_BcdeA48b2a: norm_format_tag_t = 565;
pub const norm_BcdeA48b4a: norm_format_tag_t = 566;
pub const norm_Bcdea64b: norm_format_tag_t = 567;
pub const norm_BcdeA64b2a: norm_format_tag_t = 568;
pub const norm_BcdeA64b4a: norm_format_tag_t = 569;
pub const norm_Bca32b: norm_format_tag_t = 570;
pub const norm_BcA32b2a: norm_format_tag_t = 571;
pub const norm_BcA32b4a: norm_format_tag_t = 572;
pub const norm_Bca48b: norm_format_tag_t = 573;
pub const norm_BcA48b2a: norm_format_tag_t = 574;
pub const norm_BcA48b4a: norm_format_tag_t = 575;
pub const norm_Bca64b: norm_format_tag_t = 576;
pub const norm_BcA64b2a: norm_format_tag_t = 577;
pub const norm_BcA64b4a: norm_format_tag_t = 578;
pub const norm_aCdb32c: norm_format_tag_t = 579;
pub const norm_aCdB32c2b: norm_format_tag_t = 580;
pub const norm_aCdB32c4b: norm_format_tag_t = 581;
pub const norm_aCdb48c: norm_format_tag_t = 582;
pub const norm_aCdB48c2b: norm_format_tag_t = 583;
pub const norm_aCdB48c4b: norm_format_tag_t = 584;
pub const norm_aCdb64c: norm_format_tag_t = 585;
pub const norm_aCdB64c2b: norm_format_tag_t = 586;
pub const norm_aCdB64c4b: norm_format_tag_t = 587;
pub const norm_BcA16a16b2a: norm_format_tag_t = 588;
pub const norm_BcA16a16b4a: norm_format_tag_t = 589;
pub const norm_BcdA16a16b2a: norm_format_tag_t = 590;
pub const norm_BcdA16a16b4a: norm_format_tag_t = 591;
pub const norm_BcdeA16a16b2a: norm_format_tag_t = 592;
pub const norm_BcdeA16a16b4a: norm_format_tag_t = 593;
pub const norm_aCdB16b16c2b: norm_format_tag_t = 594;
pub const norm_aCdB16b16c4b: norm_format_tag_t = 595;
pub const norm_aCdeB16b16c2b: norm_format_tag_t = 596;
pub const norm_aCdeB16b16c4b: norm_format_tag_t = 597;
pub const norm_aCdefB16b16c2b: norm_format_tag_t = 598;
pub const norm_aCdefB16b16c4b: norm_format_tag_t = 599;
pub const norm_BcA16a32b2a: norm_format_tag_t = 600;
pub const norm_BcA16a32b4a: norm_format_tag_t = 601;
pub const norm_BcA16a48b2a: norm_format_tag_t = 602;
pub const norm_BcA16a48b4a: norm_format_tag_t = 603;
pub const norm_BcA16a64b2a: norm_format_tag_t = 604;
pub const norm_BcA16a64b4a: norm_format_tag_t = 605;
pub const norm_aCdB16b32c2b: norm_format_tag_t = 606;
pub const norm_aCdB16b32c4b: norm_format_tag_t = 607;
pub const norm_aCdB16b48c2b: norm_format_tag_t = 608;
pub const norm_aCdB16b48c4b: norm_format_tag_t = 609;
pub const norm_aCdB16b64c2b: norm_format_tag_t = 610;
pub const norm_aCdB16b64c4b: norm_format_tag_t = 611;
pub const norm_BcdA16a32b2a: norm_format_tag_t = 612;
pub const norm_BcdA16a32b4a: norm_format_tag_t = 613;
pub const norm_BcdA16a48b2a: norm_format_tag_t = 614;
pub const norm_BcdA16a48b4a: norm_format_tag_t = 615;
pub const norm_BcdA16a64b2a: norm_format_tag_t = 616;
pub const norm_BcdA16a64b4a: norm_format_tag_t = 617;
pub const norm_aCdeB16b32c2b: norm_format_tag_t = 618;
pub const norm_aCdeB16b32c4b: norm_format_tag_t = 619;
pub const norm_aCdeB16b48c2b: norm_format_tag_t = 620;
pub const norm_aCdeB16b48c4b: norm_format_tag_t = 621;
pub const norm_aCdeB16b64c2b: norm_format_tag_t = 622;
pub const norm_aCdeB16b64c4b: norm_format_tag_t = 623;
pub const norm_Bca16b: norm_format_tag_t = 624;
pub const norm_BcA16b2a: norm_format_tag_t = 625;
pub const norm_BcA16b4a: norm_format_tag_t = 626;
pub const norm_Bcda16b: norm_format_tag_t = 627;
pub const norm_BcdA16b2a: norm_format_tag_t = 628;
pub const norm_BcdA16b4a: norm_format_tag_t = 629;
pub const norm_Bcdea16b: norm_format_tag_t = 630;
pub const norm_BcdeA16b2a: norm_format_tag_t = 631;
pub const norm_BcdeA16b4a: norm_format_tag_t = 632;
pub const norm_aCdb16c: norm_format_tag_t = 633;
pub const norm_aCdB16c2b: norm_format_tag_t = 634;
pub const norm_aCdB16c4b: norm_format_tag_t = 635;
pub const norm_aCdeb16c: norm_format_tag_t = 636;
pub const norm_aCdeB16c2b: norm_format_tag_t = 637;
pub const norm_aCdeB16c4b: norm_format_tag_t = 638;
pub const norm_aCdefb16c: norm_format_tag_t = 639;
pub const norm_aCdefB16c2b: norm_format_tag_t = 640;
pub const norm_aCdefB16c4b: norm_format_tag_t = 641;
pub const norm_Bcda32b: norm_format_tag_t = 642;
pub const norm_BcdA32b2a: norm_format_tag_t = 643;
pub const norm_BcdA32b4a: norm_format_tag_t = 644;
pub const norm_Bcda48b: norm_format_tag_t = 645;
pub const norm_BcdA48b2a: norm_format_tag_t = 646;
pub const norm_BcdA48b4a: norm_format_tag_t = 647;
pub const norm_Bcda64b: norm_format_tag_t = 648;
pub const norm_BcdA64b2a: norm_format_tag_t = 649;
pub const norm_BcdA64b4a: norm_format_tag_t = 650;
pub const norm_aCdeb32c: norm_format_tag_t = 651;
pub const norm_aCdeB32c2b: norm_format_tag_t = 652;
pub const norm_aCdeB32c4b: norm_format_tag_t = 653;
pub const norm_aCdeb48c: norm_format_tag_t = 654;
pub const norm_aCdeB48c2b: norm_format_tag_t = 655;
pub const norm_aCdeB48c4b: norm_format_tag_t = 656;
pub const norm_aCdeb64c: norm_format_tag_t = 657;
pub const norm_aCdeB64c2b: norm_format_tag_t = 658;
pub const norm_aCdeB64c4b: norm_format_tag_t = 659;
pub const norm_Acb24a: norm_format_tag_t = 660;
pub const norm_Acdb24a: norm_format_tag_t = 661;
pub const norm_Acdeb24a: norm_format_tag_t = 662;
pub const norm_aBdc24b: norm_format_tag_t = 663;
pub const norm_aBdec24b: norm_format_tag_t = 664;
pub const norm_aBdefc24b: norm_format_tag_t = 665;
pub const norm_abDc16d: norm_format_tag_t = 666;
pub const norm_abdEc16e: norm_format_tag_t = 667;
pub const norm_abdCe16c: norm_format_tag_t = 668;
pub const norm_AcB24a2b: norm_format_tag_t = 669;
pub const norm_AcdB24a2b: norm_format_tag_t = 670;
pub const norm_AcdeB24a2b: norm_format_tag_t = 671;
pub const norm_aBdC24b2c: norm_format_tag_t = 672;
pub const norm_aBdeC24b2c: norm_format_tag_t = 673;
pub const norm_aBdefC24b2c: norm_format_tag_t = 674;
pub const norm_AcB8a2b: norm_format_tag_t = 675;
pub const norm_AcdB8a2b: norm_format_tag_t = 676;
pub const norm_AcdeB8a2b: norm_format_tag_t = 677;
pub const norm_aBdC8b2c: norm_format_tag_t = 678;
pub const norm_aBdeC8b2c: norm_format_tag_t = 679;
pub const norm_aBdefC8b2c: norm_format_tag_t = 680;
pub const norm_AB8b32a: norm_format_tag_t = 681;
pub const norm_ABc8b32a: norm_format_tag_t = 682;
pub const norm_ABcd8b32a: norm_format_tag_t = 683;
pub const norm_ABcde8b32a: norm_format_tag_t = 684;
pub const norm_AB8b24a: norm_format_tag_t = 685;
pub const norm_ABc8b24a: norm_format_tag_t = 686;
pub const norm_ABcd8b24a: norm_format_tag_t = 687;
pub const norm_ABcde8b24a: norm_format_tag_t = 688;
pub const norm_AB8b16a: norm_format_tag_t = 689;
pub const norm_ABc8b16a: norm_format_tag_t = 690;
pub const norm_ABcd8b16a: norm_format_tag_t = 691;
pub const norm_ABcde8b16a: norm_format_tag_t = 692;
pub const norm_AB8b8a: norm_format_tag_t = 693;
pub const norm_AB4b8a4b: norm_format_tag_t = 694;
pub const norm_AB4b24a4b: norm_format_tag_t = 695;
pub const norm_ABc4b8a4b: norm_format_tag_t = 696;
pub const norm_ABc4b24a4b: norm_format_tag_t = 697;
pub const norm_ABcd4b8a4b: norm_format_tag_t = 698;
pub const norm_ABcd4b24a4b: norm_format_tag_t = 699;
pub const norm_ABcde4b8a4b: norm_format_tag_t = 700;
pub const norm_ABcde4b24a4b: norm_format_tag_t = 701;
pub const norm_AB8b24a2b: norm_format_tag_t = 702;
pub const norm_ABc8b24a2b: norm_format_tag_t = 703;
pub const norm_ABcd8b24a2b: norm_format_tag_t = 704;
pub const norm_ABcde8b24a2b: norm_format_tag_t = 705;
pub const norm_AB8b8a2b: norm_format_tag_t = 706;
pub const norm_ABc8b8a2b: norm_format_tag_t = 707;
pub const norm_ABcd8b8a2b: norm_format_tag_t = 708;
pub const norm_ABcde8b8a2b: norm_format_tag_t = 709;
pub const norm_AcB24a4b: norm_format_tag_t = 710;
pub const norm_AcdB24a4b: norm_format_tag_t = 711;
pub const norm_AcdeB24a4b: norm_format_tag_t = 712;
pub const norm_aBdC24b4c: norm_format_tag_t = 713;
pub const norm_aBdeC24b4c: norm_format_tag_t = 714;
pub const norm_aBdefC24b4c: norm_format_tag_t = 715;
pub const norm_AcB8a4b: norm_format_tag_t = 716;
pub const norm_AcdB8a4b: norm_format_tag_t = 717;
pub const norm_AcdeB8a4b: norm_format_tag_t = 718;
pub const norm_aBdC8b4c: norm_format_tag_t = 719;
pub const norm_aBdeC8b4c: norm_format_tag_t = 720;
pub const norm_aBdefC8b4c: norm_format_tag_t = 721;
pub const norm_Bca8b: norm_format_tag_t = 722;
pub const norm_BcA8b2a: norm_format_tag_t = 723;
pub const norm_Bcda8b: norm_format_tag_t = 724;
pub const norm_BcdA8b2a: norm_format_tag_t = 725;
pub const norm_Bcdea8b: norm_format_tag_t = 726;
pub const norm_BcdeA8b2a: norm_format_tag_t = 727;
pub const norm_aCdb8c: norm_format_tag_t = 728;
pub const norm_aCdB8c2b: norm_format_tag_t = 729;
pub const norm_aCdeb8c: norm_format_tag_t = 730;
pub const norm_aCdeB8c2b: norm_format_tag_t = 731;
pub const norm_aCdefb8c: norm_format_tag_t = 732;
pub const norm_aCdefB8c2b: norm_format_tag_t = 733;
pub const norm_Bca24b: norm_format_tag_t = 734;
pub const norm_BcA24b2a: norm_format_tag_t = 735;
pub const norm_Bcda24b: norm_format_tag_t = 736;
pub const norm_BcdA24b2a: norm_format_tag_t = 737;
pub const norm_Bcdea24b: norm_format_tag_t = 738;
pub const norm_BcdeA24b2a: norm_format_tag_t = 739;
pub const norm_aCdb24c: norm_format_tag_t = 740;
pub const norm_aCdB24c2b: norm_format_tag_t = 741;
pub const norm_aCdeb24c: norm_format_tag_t = 742;
pub const norm_aCdeB24c2b: norm_format_tag_t = 743;
pub const norm_aCdefb24c: norm_format_tag_t = 744;
pub const norm_aCdefB24c2b: norm_format_tag_t = 745;
pub const norm_BcA8b4a: norm_format_tag_t = 746;
pub const norm_BcdA8b4a: norm_format_tag_t = 747;
pub const norm_BcdeA8b4a: norm_format_tag_t = 748;
pub const norm_aCdB8c4b: norm_format_tag_t = 749;
pub const norm_aCdeB8c4b: norm_format_tag_t = 750;
pub const norm_aCdefB8c4b: norm_format_tag_t = 751;
pub const norm_BcA24b4a: norm_format_tag_t = 752;
pub const norm_BcdA24b4a: norm_format_tag_t = 753;
pub const norm_BcdeA24b4a: norm_format_tag_t = 754;
pub const norm_aCdB24c4b: norm_format_tag_t = 755;
pub const norm_aCdeB24c4b: norm_format_tag_t = 756;
pub const norm_aCdefB24c4b: norm_format_tag_t = 757;
pub const norm_AB16b48a: norm_format_tag_t = 758;
pub const norm_ABc16b48a: norm_format_tag_t = 759;
pub const norm_ABcd16b48a: norm_format_tag_t = 760;
pub const norm_ABcde16b48a: norm_format_tag_t = 761;
pub const norm_ABc16a4b: norm_format_tag_t = 762;
pub const norm_ABcd16a4b: norm_format_tag_t = 763;
pub const norm_ABcde16a4b: norm_format_tag_t = 764;
pub const norm_defcbA16a: norm_format_tag_t = 765;
pub const norm_defcbA8a: norm_format_tag_t = 766;
pub const norm_AcB16b64a: norm_format_tag_t = 767;
pub const norm_AcdB16b64a: norm_format_tag_t = 768;
pub const norm_AcdeB16b64a: norm_format_tag_t = 769;
pub const norm_AcB16b48a: norm_format_tag_t = 770;
pub const norm_AcdB16b48a: norm_format_tag_t = 771;
pub const norm_AcdeB16b48a: norm_format_tag_t = 772;
pub const norm_AcB16b32a: norm_format_tag_t = 773;
pub const norm_AcdB16b32a: norm_format_tag_t = 774;
pub const norm_AcdeB16b32a: norm_format_tag_t = 775;
pub const norm_AcB16b16a: norm_format_tag_t = 776;
pub const norm_AcdB16b16a: norm_format_tag_t = 777;
pub const norm_AcdeB16b16a: norm_format_tag_t = 778;
pub const norm_AcB8b32a: norm_format_tag_t = 779;
pub const norm_AcdB8b32a: norm_format_tag_t = 780;
pub const norm_AcdeB8b32a: norm_format_tag_t = 781;
pub const norm_AcB8b24a: norm_format_tag_t = 782;
pub const norm_AcdB8b24a: norm_format_tag_t = 783;
pub const norm_AcdeB8b24a: norm_format_tag_t = 784;
pub const norm_AcB8b16a: norm_format_tag_t = 785;
pub const norm_AcdB8b16a: norm_format_tag_t = 786;
pub const norm_AcdeB8b16a: norm_format_tag_t = 787;
pub const norm_AcB8b8a: norm_format_tag_t = 788;
pub const norm_AcdB8b8a: norm_format_tag_t = 789;
pub const norm_AcdeB8b8a: norm_format_tag_t = 790;
pub const norm_AcB8b64a2b: norm_format_tag_t = 791;
pub const norm_AcdB8b64a2b: norm_format_tag_t = 792;
pub const norm_AcdeB8b64a2b: norm_format_tag_t = 793;
pub const norm_AcB8b32a2b: norm_format_tag_t = 794;
pub const norm_AcdB8b32a2b: norm_format_tag_t = 795;
pub const norm_AcdeB8b32a2b: norm_format_tag_t = 796;
pub const norm_AcB8b24a2b: norm_format_tag_t = 797;
pub const norm_AcdB8b24a2b: norm_format_tag_t = 798;
pub const norm_AcdeB8b24a2b: norm_format_tag_t = 799;
pub const norm_AcB8b16a2b: norm_format_tag_t = 800;
pub const norm_AcdB8b16a2b: norm_format_tag_t = 801;
pub const norm_AcdeB8b16a2b: norm_format_tag_t = 802;
pub const norm_AcB8b8a2b: norm_format_tag_t = 803;
pub const norm_AcdB8b8a2b: norm_format_tag_t = 804;
pub const norm_AcdeB8b8a2b: norm_format_tag_t = 805;
pub const norm_AcB4b64a4b: norm_format_tag_t = 806;
pub const norm_AcdB4b64a4b: norm_format_tag_t = 807;
pub const norm_AcdeB4b64a4b: norm_format_tag_t = 808;
pub const norm_AcB4b32a4b: norm_format_tag_t = 809;
pub const norm_AcdB4b32a4b: norm_format_tag_t = 810;
pub const norm_AcdeB4b32a4b: norm_format_tag_t = 811;
pub const norm_AcB4b24a4b: norm_format_tag_t = 812;
pub const norm_AcdB4b24a4b: norm_format_tag_t = 813;
pub const norm_AcdeB4b24a4b: norm_format_tag_t = 814;
pub const norm_AcB4b16a4b: norm_format_tag_t = 815;
pub const norm_AcdB4b16a4b: norm_format_tag_t = 816;
pub const norm_AcdeB4b16a4b: norm_format_tag_t = 817;
pub const norm_AcB4b8a4b: norm_format_tag_t = 818;
pub const norm_AcdB4b8a4b: norm_format_tag_t = 819;
pub const norm_AcdeB4b8a4b: norm_format_tag_t = 820;
pub const norm_Ab4a: norm_format_tag_t = 821;
pub const norm_Ab8a: norm_format_tag_t = 822;
pub const norm_BA4b4a: norm_format_tag_t = 823;
pub const norm_BA8b4a: norm_format_tag_t = 824;
pub const norm_BA2a24b: norm_format_tag_t = 825;
pub const norm_aCB2b24c: norm_format_tag_t = 826;
pub const norm_BA2a8b: norm_format_tag_t = 827;
pub const norm_aCB2b8c: norm_format_tag_t = 828;
pub const norm_BA8a24b: norm_format_tag_t = 829;
pub const norm_aCB8b24c: norm_format_tag_t = 830;
pub const norm_BA8a16b: norm_format_tag_t = 831;
pub const norm_aCB8b16c: norm_format_tag_t = 832;
pub const norm_BA8a8b: norm_format_tag_t = 833;
pub const norm_aCB8b8c: norm_format_tag_t = 834;
pub const norm_Ab32a: norm_format_tag_t = 838;
pub const norm_aCBd8b8c: norm_format_tag_t = 839;
pub const norm_aCBde8b8c: norm_format_tag_t = 840;
pub const norm_BAc8a8b: norm_format_tag_t = 841;
pub const norm_BAcd8a8b: norm_format_tag_t = 842;
pub const norm_BAcde8a8b: norm_format_tag_t = 843;
pub const norm_aCBdef8b8c: norm_format_tag_t = 844;
pub const norm_abdEC16e4c: norm_format_tag_t = 845;
pub const norm_abDC16d4c: norm_format_tag_t = 846;
pub const norm_BA24b8a: norm_format_tag_t = 847;
pub const norm_aCB24c8b: norm_format_tag_t = 848;
pub const norm_abDC24d8c: norm_format_tag_t = 849;
pub const norm_decbA4a: norm_format_tag_t = 850;
pub const norm_defcbA4a: norm_format_tag_t = 851;
pub const norm_abDC8d8c: norm_format_tag_t = 852;
pub const norm_abDC16d8c: norm_format_tag_t = 853;
pub const norm_aCB8c8b: norm_format_tag_t = 854;
pub const norm_aCB16c8b: norm_format_tag_t = 855;
pub const norm_BA8b8a: norm_format_tag_t = 856;
pub const norm_BA16b8a: norm_format_tag_t = 857;
pub const norm_AB2a4b: norm_format_tag_t = 858;
pub const norm_aCBd4b4c: norm_format_tag_t = 859;
pub const norm_aCBde4b4c: norm_format_tag_t = 860;
pub const norm_aCBdef4b4c: norm_format_tag_t = 861;
pub const norm_BAc4a4b: norm_format_tag_t = 862;
pub const norm_BAcd4a4b: norm_format_tag_t = 863;
pub const norm_BAcde4a4b: norm_format_tag_t = 864;
pub const norm_BA12b8a: norm_format_tag_t = 865;
pub const norm_aCB12c8b: norm_format_tag_t = 866;
pub const norm_abDC12d8c: norm_format_tag_t = 867;
pub const norm_BA4b8a: norm_format_tag_t = 868;
pub const norm_aCB4c8b: norm_format_tag_t = 869;
pub const norm_abDC4d8c: norm_format_tag_t = 870;
pub const norm_Abc8a: norm_format_tag_t = 871;
pub const norm_Abc32a: norm_format_tag_t = 872;
pub const norm_aBcdef8b: norm_format_tag_t = 873;
pub const norm_aBcdef32b: norm_format_tag_t = 874;
pub const norm_x: norm_format_tag_t = 2;
pub const norm_nc: norm_format_tag_t = 3;
pub const norm_cn: norm_format_tag_t = 14;
pub const norm_tn: norm_format_tag_t = 3;
pub const norm_nt: norm_format_tag_t = 14;
pub const norm_ncw: norm_format_tag_t = 4;
pub const norm_nwc: norm_format_tag_t = 15;
pub const norm_nchw: norm_format_tag_t = 5;
pub const norm_nhwc: norm_format_tag_t = 22;
pub const norm_chwn: norm_format_tag_t = 26;
pub const norm_ncdhw: norm_format_tag_t = 6;
pub const norm_ndhwc: norm_format_tag_t = 33;
pub const norm_oi: norm_format_tag_t = 3;
pub const norm_io: norm_format_tag_t = 14;
pub const norm_oiw: norm_format_tag_t = 4;
pub const norm_owi: norm_format_tag_t = 15;
pub const norm_wio: norm_format_tag_t = 19;
pub const norm_woi: norm_format_tag_t = 18;
pub const norm_iwo: norm_format_tag_t = 17;
pub const norm_oihw: norm_format_tag_t = 5;
pub const norm_hwio: norm_format_tag_t = 28;
pub const norm_hwoi: norm_format_tag_t = 27;
pub const norm_ohwi: norm_format_tag_t = 22;
pub const norm_ihwo: norm_format_tag_t = 26;
pub const norm_iohw: norm_format_tag_t = 25;
pub const norm_oidhw: norm_format_tag_t = 6;
pub const norm_iodhw: norm_format_tag_t = 35;
pub const norm_dhwio: norm_format_tag_t = 38;
pub const norm_dhwoi: norm_format_tag_t = 37;
pub const norm_odhwi: norm_format_tag_t = 33;
pub const norm_idhwo: norm_format_tag_t = 36;
pub const norm_goiw: norm_format_tag_t = 5;
pub const norm_gowi: norm_format_tag_t = 20;
pub const norm_wigo: norm_format_tag_t = 29;
pub const norm_goihw: norm_format_tag_t = 6;
pub const norm_gohwi: norm_format_tag_t = 31;
pub const norm_hwigo: norm_format_tag_t = 39;
pub const norm_giohw: norm_format_tag_t = 32;
pub const norm_goidhw: norm_format_tag_t = 7;
pub const norm_godhwi: norm_format_tag_t = 41;
pub const norm_giodhw: norm_format_tag_t = 43;
pub const norm_dhwigo: norm_format_tag_t = 45;
pub const norm_tnc: norm_format_tag_t = 4;
pub const norm_ntc: norm_format_tag_t = 16;
pub const norm_ldnc: norm_format_tag_t = 5;
pub const norm_ldigo: norm_format_tag_t = 6;
pub const norm_ldgoi: norm_format_tag_t = 31;
pub const norm_ldio: norm_format_tag_t = 5;
pub const norm_ldoi: norm_format_tag_t = 20;
pub const norm_ldgo: norm_format_tag_t = 5;
pub const norm_gwio: norm_format_tag_t = 24;
pub const norm_ghwio: norm_format_tag_t = 34;
pub const norm_gdhwio: norm_format_tag_t = 44;
pub const norm_nCdhw32c: norm_format_tag_t = 127;
pub const norm_nCdhw16c: norm_format_tag_t = 121;
pub const norm_nCdhw4c: norm_format_tag_t = 128;
pub const norm_nCdhw8c: norm_format_tag_t = 142;
pub const norm_nChw32c: norm_format_tag_t = 83;
pub const norm_nChw16c: norm_format_tag_t = 78;
pub const norm_nChw4c: norm_format_tag_t = 84;
pub const norm_nChw8c: norm_format_tag_t = 102;
pub const norm_nCw32c: norm_format_tag_t = 59;
pub const norm_nCw16c: norm_format_tag_t = 56;
pub const norm_nCw4c: norm_format_tag_t = 60;
pub const norm_nCw8c: norm_format_tag_t = 69;
pub const norm_NCw16n16c: norm_format_tag_t = 53;
pub const norm_NCdhw16n16c: norm_format_tag_t = 116;
pub const norm_NChw16n16c: norm_format_tag_t = 75;
pub const norm_NCw32n16c: norm_format_tag_t = 367;
pub const norm_NChw32n16c: norm_format_tag_t = 368;
pub const norm_NChw16n32c: norm_format_tag_t = 538;
pub const norm_NCdhw32n16c: norm_format_tag_t = 369;
pub const norm_NCw32n32c: norm_format_tag_t = 54;
pub const norm_NChw32n32c: norm_format_tag_t = 77;
pub const norm_NCdhw32n32c: norm_format_tag_t = 148;
pub const norm_NCdhw40n16c: norm_format_tag_t = 444;
pub const norm_NCw40n16c: norm_format_tag_t = 372;
pub const norm_NChw40n16c: norm_format_tag_t = 376;
pub const norm_NCw40n32c: norm_format_tag_t = 373;
pub const norm_NChw40n32c: norm_format_tag_t = 377;
pub const norm_NCdhw40n32c: norm_format_tag_t = 445;
pub const norm_NCw2c32n8c: norm_format_tag_t = 474;
pub const norm_NChw2c32n8c: norm_format_tag_t = 478;
pub const norm_NCdhw2c32n8c: norm_format_tag_t = 483;
pub type norm_format_tag_t = ::core::ffi::c_uint;
pub const norm_success: norm_status_t = 0;
pub const norm_out_of_memory: norm_status_t = 1;
pub const norm_invalid_arguments: norm_status_t = 2;
pub const norm_unimplemented: norm_status_t = 3;
pub const norm_last_impl_reached: norm_status_t = 4;
pub const norm_runtime_error: norm_status_t = 5;
pub const norm_not_required: norm_status_t = 6;
pub type norm_status_t = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct norm_version_t {
    pub major: ::core::ffi::c_int,
    pub minor: ::core::ffi::c_int,
    pub patch: ::core::ffi::c_int,
    pub hash: *const ::core::ffi::c_char,
    pub cpu_runtime: ::core::ffi::c_uint,
    pub gpu_runtime: ::core::ffi::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of norm_version_t"][::core::mem::size_of::<norm_version_t>() - 32usize];
    ["Alignment of norm_version_t"][::core::mem::align_of::<norm_version_t>() - 8usize];
    ["Offset of field: norm_version_t::major"]
        [::core::mem::offset_of!(norm_version_t, major) - 0usize];
    ["Offset of field: norm_version_t::minor"]
        [::core::mem::offset_of!(norm_version_t, minor) - 4usize];
    ["Offset of field: norm_version_t::patch"]
        [::core::mem::offset_of!(norm_version_t, patch) - 8usize];
    ["Offset of field: norm_version_t::hash"]
        [::core::mem::offset_of!(norm_version_t, hash) - 16usize];
    ["Offset of field: norm_version_t::cpu_runtime"]
        [::core::mem::offset_of!(norm_version_t, cpu_runtime) - 24usize];
    ["Offset of field: norm_version_t::gpu_runtime"]
        [::core::mem::offset_of!(norm_version_t, gpu_runtime) - 28usize];
};
pub const norm_data_type_undef: norm_data_type_t = 0;
pub const norm_f16: norm_data_type_t = 1;
pub const norm_bf16: norm_data_type_t = 2;
pub const norm_f32: norm_data_type_t = 3;
pub const norm_s32: norm_data_type_t = 4;
pub const norm_s8: norm_data_type_t = 5;
pub const norm_u8: norm_data_type_t = 6;
pub const norm_f64: norm_data_type_t = 7;
pub const norm_boolean: norm_data_type_t = 8;
pub const norm_f8_e5m2: norm_data_type_t = 9;
pub const norm_f8_e4m3: norm_data_type_t = 10;
pub const norm_s4: norm_data_type_t = 11;
pub const norm_u4: norm_data_type_t = 12;
pub const norm_e8m0: norm_data_type_t = 13;
pub const norm_f4_e2m1: norm_data_type_t = 14;
pub const norm_f4_e3m0: norm_data_type_t = 15;
pub const norm_s64: norm_data_type_t = 16;
pub type norm_data_type_t = ::core::ffi::c_uint;
pub type norm_dim_t = i64;
pub type norm_dims_t = [norm_dim_t; 12usize];
pub const norm_format_kind_undef: norm_format_kind_t = 0;
pub const norm_format_kind_any: norm_format_kind_t = 1;
pub const norm_blocked: norm_format_kind_t = 2;
pub const norm_format_kind_opaque: norm_format_kind_t = 3;
pub const norm_format_kind_sparse: norm_format_kind_t = 4;
pub const norm_format_kind_host_scalar: norm_format_kind_t = 5;
pub type norm_format_kind_t = ::core::ffi::c_uint;
pub const norm_any_engine: norm_engine_kind_t = 0;
pub const norm_cpu: norm_engine_kind_t = 1;
pub const norm_gpu: norm_engine_kind_t = 2;
pub type norm_engine_kind_t = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug)]
pub struct norm_engine {
    _unused: [u8; 0],
}
pub type norm_engine_t = *mut norm_engine;
pub const norm_stream_in_order: norm_stream_flags_t = 1;
pub const norm_stream_out_of_order: norm_stream_flags_t = 2;
pub const norm_stream_default_flags: norm_stream_flags_t = 1;
pub type norm_stream_flags_t = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug)]
pub struct norm_stream {
    _unused: [u8; 0],
}
pub type norm_stream_t = *mut norm_stream;
pub type const_norm_stream_t = *const norm_stream;
pub type norm_parallel_body_t = ::core::option::Option<
    unsafe extern "C" fn(index: ::core::ffi::c_int, body_context: *mut ::core::ffi::c_void),
>;
pub type norm_parallel_for_t = ::core::option::Option<
    unsafe extern "C" fn(
        pool: *mut ::core::ffi::c_void,
        count: ::core::ffi::c_int,
        body: norm_parallel_body_t,
        body_context: *mut ::core::ffi::c_void,
    ),
>;
#[repr(C)]
#[derive(Debug)]
pub struct norm_memory_desc {
    _unused: [u8; 0],
}
pub type norm_memory_desc_t = *mut norm_memory_desc;
pub type const_norm_memory_desc_t = *const norm_memory_desc;
pub const norm_query_undef: norm_query_t = 0;
pub const norm_query_engine: norm_query_t = 1;
pub const norm_query_primitive_kind: norm_query_t = 2;
pub const norm_query_num_of_inputs_s32: norm_query_t = 3;
pub const norm_query_num_of_outputs_s32: norm_query_t = 4;
pub const norm_query_time_estimate_f64: norm_query_t = 5;
pub const norm_query_memory_consumption_s64: norm_query_t = 6;
pub const norm_query_scratchpad_engine: norm_query_t = 7;
pub const norm_query_impl_info_str: norm_query_t = 8;
pub const norm_query_reorder_src_engine: norm_query_t = 9;
pub const norm_query_reorder_dst_engine: norm_query_t = 10;
pub const norm_query_prop_kind: norm_query_t = 11;
pub const norm_query_cache_blob_id_size_s64: norm_query_t = 12;
pub const norm_query_cache_blob_id: norm_query_t = 13;
pub const norm_query_dilations: norm_query_t = 15;
pub const norm_query_padding_l: norm_query_t = 16;
pub const norm_query_padding_r: norm_query_t = 17;
pub const norm_query_epsilon_f32: norm_query_t = 18;
pub const norm_query_flags: norm_query_t = 19;
pub const norm_query_alg_kind: norm_query_t = 20;
pub const norm_query_alpha_f32: norm_query_t = 21;
pub const norm_query_beta_f32: norm_query_t = 22;
pub const norm_query_axis_s32: norm_query_t = 23;
pub const norm_query_local_size_s64: norm_query_t = 24;
pub const norm_query_k_f32: norm_query_t = 25;
pub const norm_query_p_f32: norm_query_t = 26;
pub const norm_query_factors: norm_query_t = 27;
pub const norm_query_cell_kind: norm_query_t = 28;
pub const norm_query_direction: norm_query_t = 29;
pub const norm_query_activation_kind: norm_query_t = 30;
pub const norm_query_kernel: norm_query_t = 31;
pub const norm_query_group_size_s64: norm_query_t = 32;
pub const norm_query_some_md: norm_query_t = 128;
pub const norm_query_src_md: norm_query_t = 129;
pub const norm_query_diff_src_md: norm_query_t = 130;
pub const norm_query_weights_md: norm_query_t = 131;
pub const norm_query_diff_weights_md: norm_query_t = 132;
pub const norm_query_dst_md: norm_query_t = 133;
pub const norm_query_diff_dst_md: norm_query_t = 134;
pub const norm_query_workspace_md: norm_query_t = 135;
pub const norm_query_scratchpad_md: norm_query_t = 136;
pub const norm_query_exec_arg_md: norm_query_t = 255;
pub const norm_query_ndims_s32: norm_query_t = 256;
pub const norm_query_dims: norm_query_t = 257;
pub const norm_query_data_type: norm_query_t = 258;
pub const norm_query_submemory_offset_s64: norm_query_t = 259;
pub const norm_query_padded_dims: norm_query_t = 260;
pub const norm_query_padded_offsets: norm_query_t = 261;
pub const norm_query_format_kind: norm_query_t = 262;
pub const norm_query_inner_nblks_s32: norm_query_t = 263;
pub const norm_query_inner_blks: norm_query_t = 264;
pub const norm_query_inner_idxs: norm_query_t = 265;
pub const norm_query_sparse_encoding: norm_query_t = 266;
pub const norm_query_nnz_s64: norm_query_t = 267;
pub const norm_query_num_handles_s32: norm_query_t = 268;
pub const norm_query_strides: norm_query_t = 14;
pub type norm_query_t = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug)]
pub struct norm_memory {
    _unused: [u8; 0],
}
pub type norm_memory_t = *mut norm_memory;
pub type const_norm_memory_t = *const norm_memory;
pub const norm_scratchpad_mode_library: norm_scratchpad_mode_t = 0;
pub const norm_scratchpad_mode_user: norm_scratchpad_mode_t = 1;
pub type norm_scratchpad_mode_t = ::core::ffi::c_uint;
pub const norm_fpmath_mode_strict: norm_fpmath_mode_t = 0;
pub const norm_fpmath_mode_bf16: norm_fpmath_mode_t = 1;
pub const norm_fpmath_mode_f16: norm_fpmath_mode_t = 2;
pub const norm_fpmath_mode_any: norm_fpmath_mode_t = 3;
pub const norm_fpmath_mode_tf32: norm_fpmath_mode_t = 4;
pub type norm_fpmath_mode_t = ::core::ffi::c_uint;
pub const norm_accumulation_mode_strict: norm_accumulation_mode_t = 0;
pub const norm_accumulation_mode_relaxed: norm_accumulation_mode_t = 1;
pub const norm_accumulation_mode_any: norm_accumulation_mode_t = 2;
pub const norm_accumulation_mode_s32: norm_accumulation_mode_t = 3;
pub const norm_accumulation_mode_f32: norm_accumulation_mode_t = 4;
pub const norm_accumulation_mode_f16: norm_accumulation_mode_t = 5;
pub type norm_accumulation_mode_t = ::core::ffi::c_uint;
pub const norm_rounding_mode_environment: norm_rounding_mode_t = 0;
pub const norm_rounding_mode_stochastic: norm_rounding_mode_t = 1;
pub type norm_rounding_mode_t = ::core::ffi::c_uint;
pub const norm_quantization_mode_undef: norm_quantization_mode_t = 0;
pub const norm_quantization_mode_static_sazp: norm_quantization_mode_t = 1;
pub const norm_quantization_mode_dynamic_mx: norm_quantization_mode_t = 2;
pub const norm_quantization_mode_dynamic_fp: norm_quantization_mode_t = 3;
pub type norm_quantization_mode_t = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug)]
pub struct norm_primitive_attr {
    _unused: [u8; 0],
}
pub type norm_primitive_attr_t = *mut norm_primitive_attr;
pub type const_norm_primitive_attr_t = *const norm_primitive_attr;
pub const norm_alg_kind_undef: norm_alg_kind_t = 0;
pub const norm_eltwise_relu: norm_alg_kind_t = 32;
pub const norm_eltwise_tanh: norm_alg_kind_t = 33;
pub const norm_eltwise_elu: norm_alg_kind_t = 34;
pub const norm_eltwise_square: norm_alg_kind_t = 35;
pub const norm_eltwise_abs: norm_alg_kind_t = 36;
pub const norm_eltwise_sqrt: norm_alg_kind_t = 37;
pub const norm_eltwise_linear: norm_alg_kind_t = 38;
pub const norm_eltwise_soft_relu: norm_alg_kind_t = 39;
pub const norm_eltwise_hardsigmoid: norm_alg_kind_t = 40;
pub const norm_eltwise_logistic: norm_alg_kind_t = 41;
pub const norm_eltwise_exp: norm_alg_kind_t = 42;
pub const norm_eltwise_gelu_tanh: norm_alg_kind_t = 43;
pub const norm_eltwise_swish: norm_alg_kind_t = 44;
pub const norm_eltwise_log: norm_alg_kind_t = 45;
pub const norm_eltwise_clip: norm_alg_kind_t = 46;
pub const norm_eltwise_clip_v2: norm_alg_kind_t = 47;
pub const norm_eltwise_pow: norm_alg_kind_t = 48;
pub const norm_eltwise_gelu_erf: norm_alg_kind_t = 49;
pub const norm_eltwise_round: norm_alg_kind_t = 50;
pub const norm_eltwise_mish: norm_alg_kind_t = 51;
pub const norm_eltwise_hardswish: norm_alg_kind_t = 52;
pub const norm_eltwise_relu_use_dst_for_bwd: norm_alg_kind_t = 256;
pub const norm_eltwise_tanh_use_dst_for_bwd: norm_alg_kind_t = 257;
pub const norm_eltwise_elu_use_dst_for_bwd: norm_alg_kind_t = 258;
pub const norm_eltwise_sqrt_use_dst_for_bwd: norm_alg_kind_t = 259;
pub const norm_eltwise_logistic_use_dst_for_bwd: norm_alg_kind_t = 260;
pub const norm_eltwise_exp_use_dst_for_bwd: norm_alg_kind_t = 261;
pub const norm_eltwise_clip_v2_use_dst_for_bwd: norm_alg_kind_t = 262;
pub const norm_binary_add: norm_alg_kind_t = 131056;
pub const norm_binary_mul: norm_alg_kind_t = 131057;
pub const norm_binary_max: norm_alg_kind_t = 131058;
pub const norm_binary_min: norm_alg_kind_t = 131059;
pub const norm_binary_div: norm_alg_kind_t = 131060;
pub const norm_binary_sub: norm_alg_kind_t = 131061;
pub const norm_binary_ge: norm_alg_kind_t = 131062;
pub const norm_binary_gt: norm_alg_kind_t = 131063;
pub const norm_binary_le: norm_alg_kind_t = 131064;
pub const norm_binary_lt: norm_alg_kind_t = 131065;
pub const norm_binary_eq: norm_alg_kind_t = 131066;
pub const norm_binary_ne: norm_alg_kind_t = 131067;
pub const norm_binary_select: norm_alg_kind_t = 131068;
pub const norm_softmax_accurate: norm_alg_kind_t = 196608;
pub const norm_softmax_log: norm_alg_kind_t = 196609;
pub const norm_softmax_accurate_inf_as_zero: norm_alg_kind_t = 16777216;
pub type norm_alg_kind_t = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug)]
pub struct norm_post_ops {
    _unused: [u8; 0],
}
pub type norm_post_ops_t = *mut norm_post_ops;
pub type const_norm_post_ops_t = *const norm_post_ops;
pub const norm_undefined_primitive: norm_primitive_kind_t = 0;
pub const norm_reorder: norm_primitive_kind_t = 1;
pub const norm_shuffle: norm_primitive_kind_t = 2;
pub const norm_concat: norm_primitive_kind_t = 3;
pub const norm_sum: norm_primitive_kind_t = 4;
pub const norm_convolution: norm_primitive_kind_t = 5;
pub const norm_deconvolution: norm_primitive_kind_t = 6;
pub const norm_eltwise: norm_primitive_kind_t = 7;
pub const norm_lrn: norm_primitive_kind_t = 8;
pub const norm_batch_normalization: norm_primitive_kind_t = 9;
pub const norm_inner_product: norm_primitive_kind_t = 10;
pub const norm_rnn: norm_primitive_kind_t = 11;
pub const norm_gemm: norm_primitive_kind_t = 12;
pub const norm_binary: norm_primitive_kind_t = 13;
pub const norm_matmul: norm_primitive_kind_t = 14;
pub const norm_resampling: norm_primitive_kind_t = 15;
pub const norm_pooling: norm_primitive_kind_t = 16;
pub const norm_reduction: norm_primitive_kind_t = 17;
pub const norm_prelu: norm_primitive_kind_t = 18;
pub const norm_softmax: norm_primitive_kind_t = 19;
pub const norm_layer_normalization: norm_primitive_kind_t = 20;
pub const norm_group_normalization: norm_primitive_kind_t = 21;
pub const norm_rope: norm_primitive_kind_t = 16777216;
pub const norm_gated: norm_primitive_kind_t = 16777217;
pub const norm_sdpa: norm_primitive_kind_t = 16777218;
pub type norm_primitive_kind_t = ::core::ffi::c_uint;
pub const norm_prop_kind_undef: norm_prop_kind_t = 0;
pub const norm_forward_training: norm_prop_kind_t = 64;
pub const norm_forward_inference: norm_prop_kind_t = 96;
pub const norm_forward: norm_prop_kind_t = 64;
pub const norm_backward: norm_prop_kind_t = 128;
pub const norm_backward_data: norm_prop_kind_t = 160;
pub const norm_backward_weights: norm_prop_kind_t = 192;
pub const norm_backward_bias: norm_prop_kind_t = 193;
pub type norm_prop_kind_t = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug)]
pub struct norm_primitive_desc {
    _unused: [u8; 0],
}
pub type norm_primitive_desc_t = *mut norm_primitive_desc;
pub type const_norm_primitive_desc_t = *const norm_primitive_desc;
#[repr(C)]
#[derive(Debug)]
pub struct norm_primitive {
    _unused: [u8; 0],
}
pub type norm_primitive_t = *mut norm_primitive;
pub type const_norm_primitive_t = *const norm_primitive;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct norm_exec_arg_t {
    pub arg: ::core::ffi::c_int,
    pub memory: norm_memory_t,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of norm_exec_arg_t"][::core::mem::size_of::<norm_exec_arg_t>() - 16usize];
    ["Alignment of norm_exec_arg_t"][::core::mem::align_of::<norm_exec_arg_t>() - 8usize];
    ["Offset of field: norm_exec_arg_t::arg"]
        [::core::mem::offset_of!(norm_exec_arg_t, arg) - 0usize];
    ["Offset of field: norm_exec_arg_t::memory"]
        [::core::mem::offset_of!(norm_exec_arg_t, memory) - 8usize];
};
pub const norm_normalization_flags_none: norm_normalization_flags_t = 0;
pub const norm_use_global_stats: norm_normalization_flags_t = 1;
pub const norm_use_scale: norm_normalization_flags_t = 2;
pub const norm_use_shift: norm_normalization_flags_t = 4;
pub const norm_fuse_norm_relu: norm_normalization_flags_t = 8;
pub const norm_fuse_norm_add_relu: norm_normalization_flags_t = 16;
pub const norm_rms_norm: norm_normalization_flags_t = 32;
pub const norm_scale_plus_one: norm_normalization_flags_t = 16777216;
pub const norm_round_before_scale: norm_normalization_flags_t = 33554432;
pub const norm_gate_output: norm_normalization_flags_t = 67108864;
pub const norm_gate_input: norm_normalization_flags_t = 134217728;
pub type norm_normalization_flags_t = ::core::ffi::c_uint;
pub const norm_cpu_isa_default: norm_cpu_isa_t = 0;
pub const norm_cpu_isa_sse41: norm_cpu_isa_t = 1;
pub const norm_cpu_isa_avx: norm_cpu_isa_t = 3;
pub const norm_cpu_isa_avx2: norm_cpu_isa_t = 7;
pub const norm_cpu_isa_avx2_vnni: norm_cpu_isa_t = 15;
pub const norm_cpu_isa_avx2_vnni_2: norm_cpu_isa_t = 31;
pub const norm_cpu_isa_avx512_core: norm_cpu_isa_t = 39;
pub const norm_cpu_isa_avx512_core_vnni: norm_cpu_isa_t = 103;
pub const norm_cpu_isa_avx512_core_bf16: norm_cpu_isa_t = 231;
pub const norm_cpu_isa_avx10_1_512: norm_cpu_isa_t = 495;
pub const norm_cpu_isa_avx512_core_fp16: norm_cpu_isa_t = 495;
pub const norm_cpu_isa_avx10_1_512_amx: norm_cpu_isa_t = 4079;
pub const norm_cpu_isa_avx512_core_amx: norm_cpu_isa_t = 4079;
pub const norm_cpu_isa_avx10_1_512_amx_fp16: norm_cpu_isa_t = 8175;
pub const norm_cpu_isa_avx512_core_amx_fp16: norm_cpu_isa_t = 8175;
pub const norm_cpu_isa_avx10_2_512: norm_cpu_isa_t = 131583;
pub const norm_cpu_isa_avx10_2_512_amx_2: norm_cpu_isa_t = 143359;
pub const norm_cpu_isa_portable: norm_cpu_isa_t = 16777216;
pub const norm_cpu_isa_neon: norm_cpu_isa_t = 16777217;
pub type norm_cpu_isa_t = ::core::ffi::c_uint;
pub const norm_cpu_isa_no_hints: norm_cpu_isa_hints_t = 0;
pub const norm_cpu_isa_prefer_ymm: norm_cpu_isa_hints_t = 1;
pub type norm_cpu_isa_hints_t = ::core::ffi::c_uint;
pub const norm_warning_epsilon_dominates: norm_explanation_warning_t = 16777216;
pub const norm_warning_epsilon_vanishes: norm_explanation_warning_t = 33554432;
pub const norm_warning_squares_overflow: norm_explanation_warning_t = 67108864;
pub const norm_warning_zero_rows: norm_explanation_warning_t = 134217728;
pub const norm_warning_not_finite: norm_explanation_warning_t = 268435456;
pub type norm_explanation_warning_t = ::core::ffi::c_uint;
pub const norm_remedy_smaller_epsilon: norm_remedy_kind_t = 16777216;
pub const norm_remedy_larger_epsilon: norm_remedy_kind_t = 16777217;
pub const norm_remedy_clip_src: norm_remedy_kind_t = 16777218;
pub const norm_remedy_scale_plus_one: norm_remedy_kind_t = 16777219;
pub const norm_remedy_temperature: norm_remedy_kind_t = 16777220;
pub const norm_remedy_fold_ratio: norm_remedy_kind_t = 16777221;
pub type norm_remedy_kind_t = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct norm_explanation_t {
    pub rows: norm_dim_t,
    pub cols: norm_dim_t,
    pub epsilon: f64,
    pub rms_in: f64,
    pub divisor: f64,
    pub ratio: f64,
    pub smallest_ratio: f64,
    pub smallest_ratio_row: norm_dim_t,
    pub scale_mean: f64,
    pub scale_rms: f64,
    pub correlation: f64,
    pub rms_out: f64,
    pub amplification: f64,
    pub warnings: ::core::ffi::c_uint,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of norm_explanation_t"][::core::mem::size_of::<norm_explanation_t>() - 112usize];
    ["Alignment of norm_explanation_t"][::core::mem::align_of::<norm_explanation_t>() - 8usize];
    ["Offset of field: norm_explanation_t::rows"]
        [::core::mem::offset_of!(norm_explanation_t, rows) - 0usize];
    ["Offset of field: norm_explanation_t::cols"]
        [::core::mem::offset_of!(norm_explanation_t, cols) - 8usize];
    ["Offset of field: norm_explanation_t::epsilon"]
        [::core::mem::offset_of!(norm_explanation_t, epsilon) - 16usize];
    ["Offset of field: norm_explanation_t::rms_in"]
        [::core::mem::offset_of!(norm_explanation_t, rms_in) - 24usize];
    ["Offset of field: norm_explanation_t::divisor"]
        [::core::mem::offset_of!(norm_explanation_t, divisor) - 32usize];
    ["Offset of field: norm_explanation_t::ratio"]
        [::core::mem::offset_of!(norm_explanation_t, ratio) - 40usize];
    ["Offset of field: norm_explanation_t::smallest_ratio"]
        [::core::mem::offset_of!(norm_explanation_t, smallest_ratio) - 48usize];
    ["Offset of field: norm_explanation_t::smallest_ratio_row"]
        [::core::mem::offset_of!(norm_explanation_t, smallest_ratio_row) - 56usize];
    ["Offset of field: norm_explanation_t::scale_mean"]
        [::core::mem::offset_of!(norm_explanation_t, scale_mean) - 64usize];
    ["Offset of field: norm_explanation_t::scale_rms"]
        [::core::mem::offset_of!(norm_explanation_t, scale_rms) - 72usize];
    ["Offset of field: norm_explanation_t::correlation"]
        [::core::mem::offset_of!(norm_explanation_t, correlation) - 80usize];
    ["Offset of field: norm_explanation_t::rms_out"]
        [::core::mem::offset_of!(norm_explanation_t, rms_out) - 88usize];
    ["Offset of field: norm_explanation_t::amplification"]
        [::core::mem::offset_of!(norm_explanation_t, amplification) - 96usize];
    ["Offset of field: norm_explanation_t::warnings"]
        [::core::mem::offset_of!(norm_explanation_t, warnings) - 104usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct norm_remedy_t {
    pub kind: norm_remedy_kind_t,
    pub value: f64,
    pub ratio: f64,
    pub rms_out: f64,
    pub amplification: f64,
    pub scores: f64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of norm_remedy_t"][::core::mem::size_of::<norm_remedy_t>() - 48usize];
    ["Alignment of norm_remedy_t"][::core::mem::align_of::<norm_remedy_t>() - 8usize];
    ["Offset of field: norm_remedy_t::kind"][::core::mem::offset_of!(norm_remedy_t, kind) - 0usize];
    ["Offset of field: norm_remedy_t::value"]
        [::core::mem::offset_of!(norm_remedy_t, value) - 8usize];
    ["Offset of field: norm_remedy_t::ratio"]
        [::core::mem::offset_of!(norm_remedy_t, ratio) - 16usize];
    ["Offset of field: norm_remedy_t::rms_out"]
        [::core::mem::offset_of!(norm_remedy_t, rms_out) - 24usize];
    ["Offset of field: norm_remedy_t::amplification"]
        [::core::mem::offset_of!(norm_remedy_t, amplification) - 32usize];
    ["Offset of field: norm_remedy_t::scores"]
        [::core::mem::offset_of!(norm_remedy_t, scores) - 40usize];
};
unsafe extern "C" {
    pub fn norm_status2str(status: norm_status_t) -> *const ::core::ffi::c_char;
}
unsafe extern "C" {
    pub fn norm_get_last_error() -> *const ::core::ffi::c_char;
}
unsafe extern "C" {
    pub fn norm_version() -> *const norm_version_t;
}
unsafe extern "C" {
    pub fn norm_data_type_size(data_type: norm_data_type_t) -> usize;
}
unsafe extern "C" {
    pub fn norm_data_type_epsilon(data_type: norm_data_type_t) -> f64;
}
unsafe extern "C" {
    pub fn norm_dt2str(data_type: norm_data_type_t) -> *const ::core::ffi::c_char;
}
unsafe extern "C" {
    pub fn norm_fmt_tag2str(tag: norm_format_tag_t) -> *const ::core::ffi::c_char;
}
unsafe extern "C" {
    pub fn norm_engine_get_count(kind: norm_engine_kind_t) -> usize;
}
unsafe extern "C" {
    pub fn norm_engine_create(
        engine: *mut norm_engine_t,
        kind: norm_engine_kind_t,
        index: usize,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_engine_get_kind(
        engine: norm_engine_t,
        kind: *mut norm_engine_kind_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_engine_destroy(engine: norm_engine_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_stream_create(
        stream: *mut norm_stream_t,
        engine: norm_engine_t,
        flags: ::core::ffi::c_uint,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_stream_get_engine(
        stream: const_norm_stream_t,
        engine: *mut norm_engine_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_stream_wait(stream: norm_stream_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_stream_destroy(stream: norm_stream_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_stream_set_parallel_for(
        stream: norm_stream_t,
        parallel_for: norm_parallel_for_t,
        pool: *mut ::core::ffi::c_void,
        num_threads: ::core::ffi::c_int,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_desc_create_with_tag(
        memory_desc: *mut norm_memory_desc_t,
        ndims: ::core::ffi::c_int,
        dims: *const norm_dim_t,
        data_type: norm_data_type_t,
        tag: norm_format_tag_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_desc_create_with_string_tag(
        memory_desc: *mut norm_memory_desc_t,
        ndims: ::core::ffi::c_int,
        dims: *const norm_dim_t,
        data_type: norm_data_type_t,
        tag: *const ::core::ffi::c_char,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_desc_create_host_scalar(
        memory_desc: *mut norm_memory_desc_t,
        data_type: norm_data_type_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_desc_set_data_type(
        memory_desc: norm_memory_desc_t,
        data_type: norm_data_type_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_desc_create_submemory(
        memory_desc: *mut norm_memory_desc_t,
        parent_memory_desc: const_norm_memory_desc_t,
        dims: *const norm_dim_t,
        offsets: *const norm_dim_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_desc_reshape(
        out_memory_desc: *mut norm_memory_desc_t,
        in_memory_desc: const_norm_memory_desc_t,
        ndims: ::core::ffi::c_int,
        dims: *const norm_dim_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_desc_permute_axes(
        out_memory_desc: *mut norm_memory_desc_t,
        in_memory_desc: const_norm_memory_desc_t,
        permutation: *const ::core::ffi::c_int,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_desc_get_blob(
        blob: *mut u8,
        size: *mut usize,
        memory_desc: const_norm_memory_desc_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_desc_create_with_blob(
        memory_desc: *mut norm_memory_desc_t,
        blob: *const u8,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_desc_create_with_strides(
        memory_desc: *mut norm_memory_desc_t,
        ndims: ::core::ffi::c_int,
        dims: *const norm_dim_t,
        data_type: norm_data_type_t,
        strides: *const norm_dim_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_desc_clone(
        memory_desc: *mut norm_memory_desc_t,
        existing_memory_desc: const_norm_memory_desc_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_desc_destroy(memory_desc: norm_memory_desc_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_desc_equal(
        lhs: const_norm_memory_desc_t,
        rhs: const_norm_memory_desc_t,
    ) -> ::core::ffi::c_int;
}
unsafe extern "C" {
    pub fn norm_memory_desc_get_size(memory_desc: const_norm_memory_desc_t) -> usize;
}
unsafe extern "C" {
    pub fn norm_memory_desc_get_size_v2(
        memory_desc: const_norm_memory_desc_t,
        index: ::core::ffi::c_int,
    ) -> usize;
}
unsafe extern "C" {
    pub fn norm_memory_desc_query(
        memory_desc: const_norm_memory_desc_t,
        what: norm_query_t,
        result: *mut ::core::ffi::c_void,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_desc_query_v2(
        memory_desc: const_norm_memory_desc_t,
        what: norm_query_t,
        index: ::core::ffi::c_int,
        result: *mut ::core::ffi::c_void,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_create(
        memory: *mut norm_memory_t,
        memory_desc: const_norm_memory_desc_t,
        engine: norm_engine_t,
        handle: *mut ::core::ffi::c_void,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_create_v2(
        memory: *mut norm_memory_t,
        memory_desc: const_norm_memory_desc_t,
        engine: norm_engine_t,
        nhandles: ::core::ffi::c_int,
        handles: *mut *mut ::core::ffi::c_void,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_destroy(memory: norm_memory_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_get_memory_desc(
        memory: const_norm_memory_t,
        memory_desc: *mut const_norm_memory_desc_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_get_engine(
        memory: const_norm_memory_t,
        engine: *mut norm_engine_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_create_host_scalar(
        memory: *mut norm_memory_t,
        memory_desc: const_norm_memory_desc_t,
        scalar_ptr: *mut ::core::ffi::c_void,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_get_host_scalar_value(
        memory: const_norm_memory_t,
        value: *mut ::core::ffi::c_void,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_set_host_scalar_value(
        memory: norm_memory_t,
        value: *const ::core::ffi::c_void,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_get_data_handle(
        memory: const_norm_memory_t,
        handle: *mut *mut ::core::ffi::c_void,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_get_data_handle_v2(
        memory: const_norm_memory_t,
        handle: *mut *mut ::core::ffi::c_void,
        index: ::core::ffi::c_int,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_set_data_handle(
        memory: norm_memory_t,
        handle: *mut ::core::ffi::c_void,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_set_data_handle_v2(
        memory: norm_memory_t,
        handle: *mut ::core::ffi::c_void,
        index: ::core::ffi::c_int,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_map_data(
        memory: const_norm_memory_t,
        mapped_ptr: *mut *mut ::core::ffi::c_void,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_map_data_v2(
        memory: const_norm_memory_t,
        mapped_ptr: *mut *mut ::core::ffi::c_void,
        index: ::core::ffi::c_int,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_unmap_data(
        memory: const_norm_memory_t,
        mapped_ptr: *mut ::core::ffi::c_void,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_memory_unmap_data_v2(
        memory: const_norm_memory_t,
        mapped_ptr: *mut ::core::ffi::c_void,
        index: ::core::ffi::c_int,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_create(attr: *mut norm_primitive_attr_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_clone(
        attr: *mut norm_primitive_attr_t,
        existing_attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_destroy(attr: norm_primitive_attr_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_get_scratchpad_mode(
        attr: const_norm_primitive_attr_t,
        mode: *mut norm_scratchpad_mode_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_set_scratchpad_mode(
        attr: norm_primitive_attr_t,
        mode: norm_scratchpad_mode_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_get_fpmath_mode(
        attr: const_norm_primitive_attr_t,
        mode: *mut norm_fpmath_mode_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_set_fpmath_mode(
        attr: norm_primitive_attr_t,
        mode: norm_fpmath_mode_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_get_fpmath_mode_v2(
        attr: const_norm_primitive_attr_t,
        mode: *mut norm_fpmath_mode_t,
        apply_to_int: *mut ::core::ffi::c_int,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_set_fpmath_mode_v2(
        attr: norm_primitive_attr_t,
        mode: norm_fpmath_mode_t,
        apply_to_int: ::core::ffi::c_int,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_get_accumulation_mode(
        attr: const_norm_primitive_attr_t,
        mode: *mut norm_accumulation_mode_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_set_accumulation_mode(
        attr: norm_primitive_attr_t,
        mode: norm_accumulation_mode_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_get_deterministic(
        attr: const_norm_primitive_attr_t,
        value: *mut ::core::ffi::c_int,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_set_deterministic(
        attr: norm_primitive_attr_t,
        value: ::core::ffi::c_int,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_get_rounding(
        attr: norm_primitive_attr_t,
        arg: ::core::ffi::c_int,
        mode: *mut norm_rounding_mode_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_set_rounding(
        attr: norm_primitive_attr_t,
        arg: ::core::ffi::c_int,
        mode: norm_rounding_mode_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_set_scales_mask(
        attr: norm_primitive_attr_t,
        arg: ::core::ffi::c_int,
        mask: ::core::ffi::c_int,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_set_scales(
        attr: norm_primitive_attr_t,
        arg: ::core::ffi::c_int,
        mask: ::core::ffi::c_int,
        group_ndims: ::core::ffi::c_int,
        group_dims: *const norm_dim_t,
        data_type: norm_data_type_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_set_scales_v2(
        attr: norm_primitive_attr_t,
        arg: ::core::ffi::c_int,
        mask: ::core::ffi::c_int,
        ndims: ::core::ffi::c_int,
        group_dims: *const norm_dim_t,
        data_type: norm_data_type_t,
        is_on_host: ::core::ffi::c_int,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_set_scales_v3(
        attr: norm_primitive_attr_t,
        arg: ::core::ffi::c_int,
        mask: ::core::ffi::c_int,
        ndims: ::core::ffi::c_int,
        group_dims: *const norm_dim_t,
        data_type: norm_data_type_t,
        is_on_host: ::core::ffi::c_int,
        qmode: norm_quantization_mode_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_set_zero_points_mask(
        attr: norm_primitive_attr_t,
        arg: ::core::ffi::c_int,
        mask: ::core::ffi::c_int,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_set_zero_points(
        attr: norm_primitive_attr_t,
        arg: ::core::ffi::c_int,
        mask: ::core::ffi::c_int,
        group_ndims: ::core::ffi::c_int,
        group_dims: *const norm_dim_t,
        data_type: norm_data_type_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_set_zero_points_v2(
        attr: norm_primitive_attr_t,
        arg: ::core::ffi::c_int,
        mask: ::core::ffi::c_int,
        ndims: ::core::ffi::c_int,
        group_dims: *const norm_dim_t,
        data_type: norm_data_type_t,
        is_on_host: ::core::ffi::c_int,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_set_residual(
        attr: norm_primitive_attr_t,
        residual_desc: const_norm_memory_desc_t,
        sum_desc: const_norm_memory_desc_t,
        rounding: norm_residual_rounding_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_get_residual(
        attr: const_norm_primitive_attr_t,
        residual_desc: *mut const_norm_memory_desc_t,
        sum_desc: *mut const_norm_memory_desc_t,
        rounding: *mut norm_residual_rounding_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_set_gate(
        attr: norm_primitive_attr_t,
        gate_desc: const_norm_memory_desc_t,
        alg_kind: norm_alg_kind_t,
        alpha: f32,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_get_gate(
        attr: const_norm_primitive_attr_t,
        gate_desc: *mut const_norm_memory_desc_t,
        alg_kind: *mut norm_alg_kind_t,
        alpha: *mut f32,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_set_partial_norm(
        attr: norm_primitive_attr_t,
        elements: norm_dim_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_get_partial_norm(
        attr: const_norm_primitive_attr_t,
        elements: *mut norm_dim_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_get_post_ops(
        attr: const_norm_primitive_attr_t,
        post_ops: *mut const_norm_post_ops_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_set_post_ops(
        attr: norm_primitive_attr_t,
        post_ops: const_norm_post_ops_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_post_ops_create(post_ops: *mut norm_post_ops_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_post_ops_clone(
        post_ops: *mut norm_post_ops_t,
        existing_post_ops: const_norm_post_ops_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_post_ops_destroy(post_ops: norm_post_ops_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_post_ops_len(post_ops: const_norm_post_ops_t) -> ::core::ffi::c_int;
}
unsafe extern "C" {
    pub fn norm_post_ops_get_kind(
        post_ops: const_norm_post_ops_t,
        index: ::core::ffi::c_int,
    ) -> norm_primitive_kind_t;
}
unsafe extern "C" {
    pub fn norm_post_ops_append_sum(
        post_ops: norm_post_ops_t,
        scale: f32,
        zero_point: i32,
        data_type: norm_data_type_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_post_ops_get_params_sum(
        post_ops: const_norm_post_ops_t,
        index: ::core::ffi::c_int,
        scale: *mut f32,
        zero_point: *mut i32,
        data_type: *mut norm_data_type_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_post_ops_append_eltwise(
        post_ops: norm_post_ops_t,
        alg_kind: norm_alg_kind_t,
        alpha: f32,
        beta: f32,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_post_ops_get_params_eltwise(
        post_ops: const_norm_post_ops_t,
        index: ::core::ffi::c_int,
        alg_kind: *mut norm_alg_kind_t,
        alpha: *mut f32,
        beta: *mut f32,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_post_ops_append_binary(
        post_ops: norm_post_ops_t,
        alg_kind: norm_alg_kind_t,
        src1_desc: const_norm_memory_desc_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_post_ops_append_binary_v2(
        post_ops: norm_post_ops_t,
        alg_kind: norm_alg_kind_t,
        src1_desc: const_norm_memory_desc_t,
        src2_desc: const_norm_memory_desc_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_post_ops_get_params_binary(
        post_ops: const_norm_post_ops_t,
        index: ::core::ffi::c_int,
        alg_kind: *mut norm_alg_kind_t,
        src1_desc: *mut const_norm_memory_desc_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_post_ops_get_params_binary_v2(
        post_ops: const_norm_post_ops_t,
        index: ::core::ffi::c_int,
        alg_kind: *mut norm_alg_kind_t,
        src1_desc: *mut const_norm_memory_desc_t,
        src2_desc: *mut const_norm_memory_desc_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_post_ops_append_prelu(
        post_ops: norm_post_ops_t,
        mask: ::core::ffi::c_int,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_post_ops_get_params_prelu(
        post_ops: const_norm_post_ops_t,
        index: ::core::ffi::c_int,
        mask: *mut ::core::ffi::c_int,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_post_ops_append_dw(
        post_ops: norm_post_ops_t,
        weights_data_type: norm_data_type_t,
        bias_data_type: norm_data_type_t,
        dst_data_type: norm_data_type_t,
        kernel_size: norm_dim_t,
        stride_size: norm_dim_t,
        padding_l_size: norm_dim_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_post_ops_get_params_dw(
        post_ops: const_norm_post_ops_t,
        index: ::core::ffi::c_int,
        weights_data_type: *mut norm_data_type_t,
        bias_data_type: *mut norm_data_type_t,
        dst_data_type: *mut norm_data_type_t,
        kernel_size: *mut norm_dim_t,
        stride_size: *mut norm_dim_t,
        padding_l_size: *mut norm_dim_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_prop_kind2str(prop_kind: norm_prop_kind_t) -> *const ::core::ffi::c_char;
}
unsafe extern "C" {
    pub fn norm_primitive_desc_next_impl(primitive_desc: norm_primitive_desc_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_desc_clone(
        primitive_desc: *mut norm_primitive_desc_t,
        existing_primitive_desc: const_norm_primitive_desc_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_desc_destroy(primitive_desc: norm_primitive_desc_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_desc_get_attr(
        primitive_desc: const_norm_primitive_desc_t,
        attr: *mut const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_desc_query(
        primitive_desc: const_norm_primitive_desc_t,
        what: norm_query_t,
        index: ::core::ffi::c_int,
        result: *mut ::core::ffi::c_void,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_desc_query_md(
        primitive_desc: const_norm_primitive_desc_t,
        what: norm_query_t,
        index: ::core::ffi::c_int,
    ) -> const_norm_memory_desc_t;
}
unsafe extern "C" {
    pub fn norm_primitive_desc_query_s32(
        primitive_desc: const_norm_primitive_desc_t,
        what: norm_query_t,
        index: ::core::ffi::c_int,
    ) -> ::core::ffi::c_int;
}
unsafe extern "C" {
    pub fn norm_primitive_create(
        primitive: *mut norm_primitive_t,
        primitive_desc: const_norm_primitive_desc_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_execute(
        primitive: const_norm_primitive_t,
        stream: norm_stream_t,
        nargs: ::core::ffi::c_int,
        args: *const norm_exec_arg_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_execute_many(
        count: ::core::ffi::c_int,
        primitives: *const const_norm_primitive_t,
        stream: norm_stream_t,
        nargs: *const ::core::ffi::c_int,
        args: *const *const norm_exec_arg_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_get_primitive_desc(
        primitive: const_norm_primitive_t,
        primitive_desc: *mut const_norm_primitive_desc_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_destroy(primitive: norm_primitive_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_layer_normalization_forward_primitive_desc_create(
        primitive_desc: *mut norm_primitive_desc_t,
        engine: norm_engine_t,
        prop_kind: norm_prop_kind_t,
        src_desc: const_norm_memory_desc_t,
        dst_desc: const_norm_memory_desc_t,
        stat_desc: const_norm_memory_desc_t,
        epsilon: f32,
        flags: ::core::ffi::c_uint,
        attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_layer_normalization_forward_primitive_desc_create_v2(
        primitive_desc: *mut norm_primitive_desc_t,
        engine: norm_engine_t,
        prop_kind: norm_prop_kind_t,
        src_desc: const_norm_memory_desc_t,
        dst_desc: const_norm_memory_desc_t,
        stat_desc: const_norm_memory_desc_t,
        scale_shift_data_type: norm_data_type_t,
        epsilon: f32,
        flags: ::core::ffi::c_uint,
        attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_layer_normalization_backward_primitive_desc_create(
        primitive_desc: *mut norm_primitive_desc_t,
        engine: norm_engine_t,
        prop_kind: norm_prop_kind_t,
        diff_src_desc: const_norm_memory_desc_t,
        diff_dst_desc: const_norm_memory_desc_t,
        src_desc: const_norm_memory_desc_t,
        stat_desc: const_norm_memory_desc_t,
        epsilon: f32,
        flags: ::core::ffi::c_uint,
        hint_fwd_pd: const_norm_primitive_desc_t,
        attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_layer_normalization_backward_primitive_desc_create_v2(
        primitive_desc: *mut norm_primitive_desc_t,
        engine: norm_engine_t,
        prop_kind: norm_prop_kind_t,
        diff_src_desc: const_norm_memory_desc_t,
        diff_dst_desc: const_norm_memory_desc_t,
        src_desc: const_norm_memory_desc_t,
        stat_desc: const_norm_memory_desc_t,
        diff_scale_shift_data_type: norm_data_type_t,
        scale_shift_data_type: norm_data_type_t,
        epsilon: f32,
        flags: ::core::ffi::c_uint,
        hint_fwd_pd: const_norm_primitive_desc_t,
        attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_explain(
        src: const_norm_memory_t,
        scale: const_norm_memory_t,
        epsilon: f32,
        flags: ::core::ffi::c_uint,
        row: norm_dim_t,
        explanation: *mut norm_explanation_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_explain_remedies(
        src: const_norm_memory_t,
        scale: const_norm_memory_t,
        epsilon: f32,
        flags: ::core::ffi::c_uint,
        row: norm_dim_t,
        remedies: *mut norm_remedy_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_explanation_text(
        explanation: *const norm_explanation_t,
        remedies: *const norm_remedy_t,
        text: *mut ::core::ffi::c_char,
        size: usize,
    ) -> usize;
}
unsafe extern "C" {
    pub fn norm_warning2str(warning: norm_explanation_warning_t) -> *const ::core::ffi::c_char;
}
unsafe extern "C" {
    pub fn norm_remedy2str(kind: norm_remedy_kind_t) -> *const ::core::ffi::c_char;
}
unsafe extern "C" {
    pub fn norm_group_normalization_forward_primitive_desc_create(
        primitive_desc: *mut norm_primitive_desc_t,
        engine: norm_engine_t,
        prop_kind: norm_prop_kind_t,
        src_desc: const_norm_memory_desc_t,
        dst_desc: const_norm_memory_desc_t,
        groups: norm_dim_t,
        epsilon: f32,
        flags: ::core::ffi::c_uint,
        attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_group_normalization_backward_primitive_desc_create(
        primitive_desc: *mut norm_primitive_desc_t,
        engine: norm_engine_t,
        prop_kind: norm_prop_kind_t,
        diff_src_desc: const_norm_memory_desc_t,
        diff_dst_desc: const_norm_memory_desc_t,
        src_desc: const_norm_memory_desc_t,
        groups: norm_dim_t,
        epsilon: f32,
        flags: ::core::ffi::c_uint,
        hint_fwd_pd: const_norm_primitive_desc_t,
        attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_softmax_forward_primitive_desc_create(
        primitive_desc: *mut norm_primitive_desc_t,
        engine: norm_engine_t,
        prop_kind: norm_prop_kind_t,
        alg_kind: norm_alg_kind_t,
        src_desc: const_norm_memory_desc_t,
        dst_desc: const_norm_memory_desc_t,
        softmax_axis: ::core::ffi::c_int,
        attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_softmax_backward_primitive_desc_create(
        primitive_desc: *mut norm_primitive_desc_t,
        engine: norm_engine_t,
        alg_kind: norm_alg_kind_t,
        diff_src_desc: const_norm_memory_desc_t,
        diff_dst_desc: const_norm_memory_desc_t,
        dst_desc: const_norm_memory_desc_t,
        softmax_axis: ::core::ffi::c_int,
        hint_fwd_pd: const_norm_primitive_desc_t,
        attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_set_softmax_stats(
        attr: norm_primitive_attr_t,
        stats_desc: const_norm_memory_desc_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_get_softmax_stats(
        attr: const_norm_primitive_attr_t,
        stats_desc: *mut const_norm_memory_desc_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_set_dropout(
        attr: norm_primitive_attr_t,
        mask_desc: const_norm_memory_desc_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_set_dropout_v2(
        attr: norm_primitive_attr_t,
        mask_desc: const_norm_memory_desc_t,
        seed_data_type: norm_data_type_t,
        use_offset: ::core::ffi::c_int,
        use_host_scalars: ::core::ffi::c_int,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_get_dropout(
        attr: const_norm_primitive_attr_t,
        mask_desc: *mut const_norm_memory_desc_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_primitive_attr_get_dropout_v2(
        attr: const_norm_primitive_attr_t,
        mask_desc: *mut const_norm_memory_desc_t,
        seed_data_type: *mut norm_data_type_t,
        use_offset: *mut ::core::ffi::c_int,
        use_host_scalars: *mut ::core::ffi::c_int,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_eltwise_forward_primitive_desc_create(
        primitive_desc: *mut norm_primitive_desc_t,
        engine: norm_engine_t,
        prop_kind: norm_prop_kind_t,
        alg_kind: norm_alg_kind_t,
        src_desc: const_norm_memory_desc_t,
        dst_desc: const_norm_memory_desc_t,
        alpha: f32,
        beta: f32,
        attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_eltwise_backward_primitive_desc_create(
        primitive_desc: *mut norm_primitive_desc_t,
        engine: norm_engine_t,
        alg_kind: norm_alg_kind_t,
        diff_src_desc: const_norm_memory_desc_t,
        diff_dst_desc: const_norm_memory_desc_t,
        data_desc: const_norm_memory_desc_t,
        alpha: f32,
        beta: f32,
        hint_fwd_pd: const_norm_primitive_desc_t,
        attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_binary_primitive_desc_create(
        primitive_desc: *mut norm_primitive_desc_t,
        engine: norm_engine_t,
        alg_kind: norm_alg_kind_t,
        src0_desc: const_norm_memory_desc_t,
        src1_desc: const_norm_memory_desc_t,
        dst_desc: const_norm_memory_desc_t,
        attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_binary_primitive_desc_create_v2(
        primitive_desc: *mut norm_primitive_desc_t,
        engine: norm_engine_t,
        alg_kind: norm_alg_kind_t,
        src0_desc: const_norm_memory_desc_t,
        src1_desc: const_norm_memory_desc_t,
        src2_desc: const_norm_memory_desc_t,
        dst_desc: const_norm_memory_desc_t,
        attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_reorder_primitive_desc_create(
        reorder_primitive_desc: *mut norm_primitive_desc_t,
        src_desc: const_norm_memory_desc_t,
        src_engine: norm_engine_t,
        dst_desc: const_norm_memory_desc_t,
        dst_engine: norm_engine_t,
        attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_engine_kind2str(kind: norm_engine_kind_t) -> *const ::core::ffi::c_char;
}
unsafe extern "C" {
    pub fn norm_fmt_kind2str(format_kind: norm_format_kind_t) -> *const ::core::ffi::c_char;
}
unsafe extern "C" {
    pub fn norm_prim_kind2str(primitive_kind: norm_primitive_kind_t) -> *const ::core::ffi::c_char;
}
unsafe extern "C" {
    pub fn norm_alg_kind2str(alg_kind: norm_alg_kind_t) -> *const ::core::ffi::c_char;
}
unsafe extern "C" {
    pub fn norm_scratchpad_mode2str(mode: norm_scratchpad_mode_t) -> *const ::core::ffi::c_char;
}
unsafe extern "C" {
    pub fn norm_fpmath_mode2str(mode: norm_fpmath_mode_t) -> *const ::core::ffi::c_char;
}
unsafe extern "C" {
    pub fn norm_accumulation_mode2str(mode: norm_accumulation_mode_t)
    -> *const ::core::ffi::c_char;
}
unsafe extern "C" {
    pub fn norm_rounding_mode2str(mode: norm_rounding_mode_t) -> *const ::core::ffi::c_char;
}
unsafe extern "C" {
    pub fn norm_quantization_mode2str(mode: norm_quantization_mode_t)
    -> *const ::core::ffi::c_char;
}
unsafe extern "C" {
    pub fn norm_cpu_isa_hints2str(isa_hints: norm_cpu_isa_hints_t) -> *const ::core::ffi::c_char;
}
unsafe extern "C" {
    pub fn norm_set_max_cpu_isa(isa: norm_cpu_isa_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_set_cpu_isa_hints(isa_hints: norm_cpu_isa_hints_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_get_cpu_isa_hints() -> norm_cpu_isa_hints_t;
}
unsafe extern "C" {
    pub fn norm_get_primitive_cache_capacity(capacity: *mut ::core::ffi::c_int) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_set_primitive_cache_capacity(capacity: ::core::ffi::c_int) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_set_default_fpmath_mode(mode: norm_fpmath_mode_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_get_default_fpmath_mode(mode: *mut norm_fpmath_mode_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_get_effective_cpu_isa() -> norm_cpu_isa_t;
}
unsafe extern "C" {
    pub fn norm_cpu_isa2str(isa: norm_cpu_isa_t) -> *const ::core::ffi::c_char;
}
unsafe extern "C" {
    pub fn norm_set_num_threads(num_threads: ::core::ffi::c_int) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_get_num_threads() -> ::core::ffi::c_int;
}
unsafe extern "C" {
    pub fn norm_get_last_num_threads() -> ::core::ffi::c_int;
}
unsafe extern "C" {
    pub fn norm_set_verbose(level: ::core::ffi::c_int) -> norm_status_t;
}
pub const norm_gate_first: norm_gate_packing_t = 16777216;
pub const norm_up_first: norm_gate_packing_t = 16777217;
pub const norm_gate_interleaved: norm_gate_packing_t = 16777218;
pub const norm_gate_separate: norm_gate_packing_t = 16777219;
pub type norm_gate_packing_t = ::core::ffi::c_uint;
unsafe extern "C" {
    pub fn norm_gated_forward_primitive_desc_create(
        primitive_desc: *mut norm_primitive_desc_t,
        engine: norm_engine_t,
        prop_kind: norm_prop_kind_t,
        alg_kind: norm_alg_kind_t,
        packing: norm_gate_packing_t,
        src_desc: const_norm_memory_desc_t,
        up_desc: const_norm_memory_desc_t,
        dst_desc: const_norm_memory_desc_t,
        alpha: f32,
        limit: f32,
        shift: f32,
        attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_gated_backward_primitive_desc_create(
        primitive_desc: *mut norm_primitive_desc_t,
        engine: norm_engine_t,
        alg_kind: norm_alg_kind_t,
        packing: norm_gate_packing_t,
        diff_src_desc: const_norm_memory_desc_t,
        diff_up_desc: const_norm_memory_desc_t,
        diff_dst_desc: const_norm_memory_desc_t,
        src_desc: const_norm_memory_desc_t,
        up_desc: const_norm_memory_desc_t,
        dst_desc: const_norm_memory_desc_t,
        alpha: f32,
        limit: f32,
        shift: f32,
        hint_fwd_pd: const_norm_primitive_desc_t,
        attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
pub const norm_rope_interleaved: norm_rope_pairing_t = 16777216;
pub const norm_rope_half_split: norm_rope_pairing_t = 16777217;
pub const norm_rope_half_split_of_head: norm_rope_pairing_t = 16777218;
pub type norm_rope_pairing_t = ::core::ffi::c_uint;
pub const norm_rope_from_frequencies: norm_rope_angles_t = 16777216;
pub const norm_rope_from_tables: norm_rope_angles_t = 16777217;
pub type norm_rope_angles_t = ::core::ffi::c_uint;
pub const norm_write_slots: norm_rope_flags_t = 268435456;
pub const norm_rope_norm_rounded: norm_rope_flags_t = 536870912;
pub const norm_rope_interleaved_sections: norm_rope_flags_t = 1073741824;
pub type norm_rope_flags_t = ::core::ffi::c_uint;
pub const norm_rope_scaling_none: norm_rope_scaling_t = 16777216;
pub const norm_rope_scaling_linear: norm_rope_scaling_t = 16777217;
pub const norm_rope_scaling_ntk: norm_rope_scaling_t = 16777218;
pub const norm_rope_scaling_dynamic_ntk: norm_rope_scaling_t = 16777219;
pub const norm_rope_scaling_yarn: norm_rope_scaling_t = 16777220;
pub const norm_rope_scaling_llama3: norm_rope_scaling_t = 16777221;
pub const norm_rope_scaling_longrope: norm_rope_scaling_t = 16777222;
pub type norm_rope_scaling_t = ::core::ffi::c_uint;
unsafe extern "C" {
    pub fn norm_rope_forward_primitive_desc_create(
        primitive_desc: *mut norm_primitive_desc_t,
        engine: norm_engine_t,
        prop_kind: norm_prop_kind_t,
        pairing: norm_rope_pairing_t,
        angles: norm_rope_angles_t,
        src_desc: const_norm_memory_desc_t,
        dst_desc: const_norm_memory_desc_t,
        position_desc: const_norm_memory_desc_t,
        index_dim: ::core::ffi::c_int,
        table_desc: const_norm_memory_desc_t,
        scale_desc: const_norm_memory_desc_t,
        rotary_dims: norm_dim_t,
        magnitude: f32,
        num_sections: ::core::ffi::c_int,
        sections: *const norm_dim_t,
        epsilon: f32,
        flags: ::core::ffi::c_uint,
        attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_rope_backward_primitive_desc_create(
        primitive_desc: *mut norm_primitive_desc_t,
        engine: norm_engine_t,
        pairing: norm_rope_pairing_t,
        angles: norm_rope_angles_t,
        diff_src_desc: const_norm_memory_desc_t,
        diff_dst_desc: const_norm_memory_desc_t,
        src_desc: const_norm_memory_desc_t,
        position_desc: const_norm_memory_desc_t,
        index_dim: ::core::ffi::c_int,
        table_desc: const_norm_memory_desc_t,
        scale_desc: const_norm_memory_desc_t,
        diff_scale_desc: const_norm_memory_desc_t,
        rotary_dims: norm_dim_t,
        magnitude: f32,
        num_sections: ::core::ffi::c_int,
        sections: *const norm_dim_t,
        epsilon: f32,
        flags: ::core::ffi::c_uint,
        hint_fwd_pd: const_norm_primitive_desc_t,
        attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_rope_frequencies(
        scaling: norm_rope_scaling_t,
        rotary_dims: norm_dim_t,
        base: f64,
        num_parameters: ::core::ffi::c_int,
        parameters: *const f64,
        frequencies: *mut f64,
        magnitude: *mut f32,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_rope_permute(
        from: norm_rope_pairing_t,
        to: norm_rope_pairing_t,
        heads: norm_dim_t,
        rotary_dims: norm_dim_t,
        src: const_norm_memory_t,
        dst: norm_memory_t,
    ) -> norm_status_t;
}
pub const norm_attn_mask_undef: norm_attn_mask_type_t = 0;
pub const norm_attn_mask_buffer: norm_attn_mask_type_t = 1;
pub const norm_attn_mask_top_left: norm_attn_mask_type_t = 2;
pub const norm_attn_mask_bottom_right: norm_attn_mask_type_t = 3;
pub type norm_attn_mask_type_t = ::core::ffi::c_uint;
pub const norm_window_none: norm_attn_window_t = 16777216;
pub const norm_window_with_self: norm_attn_window_t = 16777217;
pub const norm_window_before_self: norm_attn_window_t = 16777218;
pub type norm_attn_window_t = ::core::ffi::c_uint;
pub const norm_sdpa_sinks: norm_sdpa_flags_t = 16777216;
pub const norm_sdpa_alibi: norm_sdpa_flags_t = 33554432;
pub const norm_sdpa_key_lengths: norm_sdpa_flags_t = 67108864;
pub const norm_sdpa_query_lengths: norm_sdpa_flags_t = 134217728;
pub const norm_sdpa_query_offsets: norm_sdpa_flags_t = 268435456;
pub const norm_sdpa_entropy: norm_sdpa_flags_t = 536870912;
pub const norm_sdpa_key_offsets: norm_sdpa_flags_t = 1073741824;
pub type norm_sdpa_flags_t = ::core::ffi::c_uint;
unsafe extern "C" {
    pub fn norm_sdpa_forward_primitive_desc_create(
        primitive_desc: *mut norm_primitive_desc_t,
        engine: norm_engine_t,
        prop_kind: norm_prop_kind_t,
        query_desc: const_norm_memory_desc_t,
        key_desc: const_norm_memory_desc_t,
        value_desc: const_norm_memory_desc_t,
        dst_desc: const_norm_memory_desc_t,
        mask_desc: const_norm_memory_desc_t,
        page_table_desc: const_norm_memory_desc_t,
        mask_type: norm_attn_mask_type_t,
        window_kind: norm_attn_window_t,
        window: norm_dim_t,
        first_keys: norm_dim_t,
        scale: f32,
        soft_cap: f32,
        flags: ::core::ffi::c_uint,
        attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_sdpa_backward_primitive_desc_create(
        primitive_desc: *mut norm_primitive_desc_t,
        engine: norm_engine_t,
        diff_query_desc: const_norm_memory_desc_t,
        diff_key_desc: const_norm_memory_desc_t,
        diff_value_desc: const_norm_memory_desc_t,
        diff_dst_desc: const_norm_memory_desc_t,
        query_desc: const_norm_memory_desc_t,
        key_desc: const_norm_memory_desc_t,
        value_desc: const_norm_memory_desc_t,
        dst_desc: const_norm_memory_desc_t,
        mask_desc: const_norm_memory_desc_t,
        diff_mask_desc: const_norm_memory_desc_t,
        mask_type: norm_attn_mask_type_t,
        window_kind: norm_attn_window_t,
        window: norm_dim_t,
        first_keys: norm_dim_t,
        scale: f32,
        soft_cap: f32,
        flags: ::core::ffi::c_uint,
        hint_fwd_pd: const_norm_primitive_desc_t,
        attr: const_norm_primitive_attr_t,
    ) -> norm_status_t;
}
pub const norm_window_fixed: norm_window_strategy_t = 16777216;
pub const norm_window_by_length: norm_window_strategy_t = 16777217;
pub const norm_window_by_entropy: norm_window_strategy_t = 16777218;
pub const norm_window_by_entropy_over_4: norm_window_strategy_t = 16777219;
pub const norm_window_by_perplexity: norm_window_strategy_t = 16777220;
pub type norm_window_strategy_t = ::core::ffi::c_uint;
unsafe extern "C" {
    pub fn norm_adaptive_window(
        strategy: norm_window_strategy_t,
        length: norm_dim_t,
        min_window: norm_dim_t,
        max_window: norm_dim_t,
        measured: f64,
        vocabulary: f64,
        previous: norm_dim_t,
        smoothing: f64,
        max_step: norm_dim_t,
        window: *mut norm_dim_t,
    ) -> norm_status_t;
}
#[repr(C)]
#[derive(Debug)]
pub struct norm_kv_cache {
    _unused: [u8; 0],
}
pub type norm_kv_cache_t = *mut norm_kv_cache;
pub type const_norm_kv_cache_t = *const norm_kv_cache;
pub const norm_kv_contiguous: norm_kv_cache_kind_t = 16777216;
pub const norm_kv_paged: norm_kv_cache_kind_t = 16777217;
pub const norm_kv_ring: norm_kv_cache_kind_t = 16777218;
pub type norm_kv_cache_kind_t = ::core::ffi::c_uint;
unsafe extern "C" {
    pub fn norm_kv_cache_create(
        cache: *mut norm_kv_cache_t,
        engine: norm_engine_t,
        kind: norm_kv_cache_kind_t,
        data_type: norm_data_type_t,
        layers: norm_dim_t,
        kv_heads: norm_dim_t,
        key_size: norm_dim_t,
        value_size: norm_dim_t,
        sequences: norm_dim_t,
        tokens: norm_dim_t,
        step_tokens: norm_dim_t,
        page_size: norm_dim_t,
        pages: norm_dim_t,
        window: norm_dim_t,
        first_tokens: norm_dim_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_kv_cache_destroy(cache: norm_kv_cache_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_kv_cache_new_sequence(
        cache: norm_kv_cache_t,
        sequence: *mut norm_dim_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_kv_cache_drop(cache: norm_kv_cache_t, sequence: norm_dim_t) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_kv_cache_get_length(
        cache: const_norm_kv_cache_t,
        sequence: norm_dim_t,
        length: *mut norm_dim_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_kv_cache_truncate(
        cache: norm_kv_cache_t,
        sequence: norm_dim_t,
        length: norm_dim_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_kv_cache_fork(
        cache: norm_kv_cache_t,
        sequence: norm_dim_t,
        copy: *mut norm_dim_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_kv_cache_extend(
        cache: norm_kv_cache_t,
        count: ::core::ffi::c_int,
        sequences: *const norm_dim_t,
        tokens: *const norm_dim_t,
        rows: norm_dim_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_kv_cache_write(
        cache: norm_kv_cache_t,
        stream: norm_stream_t,
        layer: norm_dim_t,
        keys: const_norm_memory_t,
        values: const_norm_memory_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_kv_cache_get_arguments(
        cache: norm_kv_cache_t,
        layer: norm_dim_t,
        count: ::core::ffi::c_int,
        sequences: *const norm_dim_t,
        nargs: *mut ::core::ffi::c_int,
        args: *mut norm_exec_arg_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_kv_cache_get_rope_arguments(
        cache: norm_kv_cache_t,
        layer: norm_dim_t,
        nargs: *mut ::core::ffi::c_int,
        args: *mut norm_exec_arg_t,
    ) -> norm_status_t;
}
unsafe extern "C" {
    pub fn norm_kv_cache_get_descs(
        cache: const_norm_kv_cache_t,
        count: ::core::ffi::c_int,
        key_desc: *mut norm_memory_desc_t,
        value_desc: *mut norm_memory_desc_t,
        page_table_desc: *mut norm_memory_desc_t,
        rope_dst_desc: *mut norm_memory_desc_t,
    ) -> norm_status_t;
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct norm_kv_cache_stats_t {
    pub sequences: norm_dim_t,
    pub page_size: norm_dim_t,
    pub page_bytes: norm_dim_t,
    pub pages: norm_dim_t,
    pub used_pages: norm_dim_t,
    pub shared_pages: norm_dim_t,
    pub copied_pages: norm_dim_t,
    pub bytes: norm_dim_t,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
#[cfg(target_pointer_width = "64")]
const _: () = {
    ["Size of norm_kv_cache_stats_t"][::core::mem::size_of::<norm_kv_cache_stats_t>() - 64usize];
    ["Alignment of norm_kv_cache_stats_t"]
        [::core::mem::align_of::<norm_kv_cache_stats_t>() - 8usize];
    ["Offset of field: norm_kv_cache_stats_t::sequences"]
        [::core::mem::offset_of!(norm_kv_cache_stats_t, sequences) - 0usize];
    ["Offset of field: norm_kv_cache_stats_t::page_size"]
        [::core::mem::offset_of!(norm_kv_cache_stats_t, page_size) - 8usize];
    ["Offset of field: norm_kv_cache_stats_t::page_bytes"]
        [::core::mem::offset_of!(norm_kv_cache_stats_t, page_bytes) - 16usize];
    ["Offset of field: norm_kv_cache_stats_t::pages"]
        [::core::mem::offset_of!(norm_kv_cache_stats_t, pages) - 24usize];
    ["Offset of field: norm_kv_cache_stats_t::used_pages"]
        [::core::mem::offset_of!(norm_kv_cache_stats_t, used_pages) - 32usize];
    ["Offset of field: norm_kv_cache_stats_t::shared_pages"]
        [::core::mem::offset_of!(norm_kv_cache_stats_t, shared_pages) - 40usize];
    ["Offset of field: norm_kv_cache_stats_t::copied_pages"]
        [::core::mem::offset_of!(norm_kv_cache_stats_t, copied_pages) - 48usize];
    ["Offset of field: norm_kv_cache_stats_t::bytes"]
        [::core::mem::offset_of!(norm_kv_cache_stats_t, bytes) - 56usize];
};
unsafe extern "C" {
    pub fn norm_kv_cache_get_stats(
        cache: const_norm_kv_cache_t,
        stats: *mut norm_kv_cache_stats_t,
    ) -> norm_status_t;
}
